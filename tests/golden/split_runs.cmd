$TERN run $TINY/llama-split-00001-of-00003.gguf -p "hello" -n 3 --temp 0 --json --ignore-eos 2>/dev/null | cut -c1-17
