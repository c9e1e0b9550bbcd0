# exit 1
echo '{"prompt": "a", "temperatur": 1}' > p; $TERN run $TINY/llama-q8_0.gguf --prompts p
