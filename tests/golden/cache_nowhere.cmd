$TERN run $TINY/llama-q8_0.gguf --cache /dev/null/c -p "hello" -n 1 --temp 0 --ignore-eos 2>&1 >/dev/null | head -1
