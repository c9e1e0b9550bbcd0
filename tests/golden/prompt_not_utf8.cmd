# exit 1
printf 'ab\377' | $TERN run $TINY/llama-q8_0.gguf
