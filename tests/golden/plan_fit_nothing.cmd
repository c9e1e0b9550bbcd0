# exit 1
$TERN plan $TINY/llama-q8_0.gguf --fit 1M
