# exit 1
$TERN chat $TINY/qwen2-k.gguf </dev/null
