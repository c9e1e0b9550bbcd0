printf '{"prompt": "a", "n": 1}\n{"prompt": "b", "n": 1}\n' > p; $TERN run $TINY/llama-q8_0.gguf --prompts p --jsonl 2>/dev/null | grep -o '"memory": {"model"'
