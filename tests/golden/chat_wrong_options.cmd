# exit 2
$TERN chat $TINY/qwen2-k.gguf --think often </dev/null
