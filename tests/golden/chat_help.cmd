printf '/help\n//help\n/quit\nnot reached\n' | $TERN chat $TINY/qwen2-k.gguf --chat-template chatml --temp 0 -n 2 -t 1
