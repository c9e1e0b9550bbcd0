printf '{"prompt": "a", "n": 1}\n{"prompt": "b", "n": 1}\n' > p; $TERN run $TINY/llama-q8_0.gguf --prompts p --jsonl | grep -o '"memory": {"model"'
