# exit 1
yes 'a few words' | head -n 40 > t; $TERN perplexity $TINY/llama-q4_0.gguf -f t -c 64 --kl-base t
