# exit 1
$TERN run $TINY/llama-q8_0.gguf -p hi -c 1000000000
