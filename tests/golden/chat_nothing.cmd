$TERN chat $TINY/qwen2-k.gguf --chat-template chatml --temp 0 -n 5 -t 1 </dev/null
