$TERN run $TINY/llama-q8_0.gguf -p "hello" -n 3 --temp 0 --seed 1 --json --ignore-eos
