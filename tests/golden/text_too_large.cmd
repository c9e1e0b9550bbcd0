# exit 1
truncate -s 2G p; $TERN tokenize $TINY/llama-q8_0.gguf -f p
