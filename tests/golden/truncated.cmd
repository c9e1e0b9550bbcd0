# exit 1
head -c 100000 $TINY/llama-q8_0.gguf > m.gguf; $TERN run m.gguf -p hi
