# exit 1
$TERN inspect $TINY/llama-q8_0.gguf --verify
