# exit 2
$TERN template $TINY/llama-q8_0.gguf
