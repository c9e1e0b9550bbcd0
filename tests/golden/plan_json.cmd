$TERN plan $TINY/llama-q4_0.gguf -c 64 -t 1 --sequences 2 --chunk 16 --kv-k q8_0 --kv-v f32 --json
