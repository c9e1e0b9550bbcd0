# exit 1
$TERN run $TINY/llama-split-00002-of-00003.gguf -p hi
