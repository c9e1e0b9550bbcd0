# exit 1
$TERN run $TINY/llama-q8_0.gguf -p hi -n 4 --json > /dev/full
