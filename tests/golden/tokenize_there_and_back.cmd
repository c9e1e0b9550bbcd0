$TERN tokenize $TINY/llama-q8_0.gguf --decode "$($TERN tokenize $TINY/llama-q8_0.gguf --no-bos -p "café <s> 12" | cut -c1-6 | tr -d " " | paste -sd,)"
