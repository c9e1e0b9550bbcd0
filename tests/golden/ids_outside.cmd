# exit 1
$TERN run $TINY/llama-q8_0.gguf --ids 1,999999
