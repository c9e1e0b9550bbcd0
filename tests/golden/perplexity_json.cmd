yes 'a few words of a text' | head -n 40 > t; $TERN perplexity $TINY/llama-q4_0.gguf -f t -c 64 --save-logits l --json && $TERN perplexity $TINY/llama-q4_0.gguf -f t -c 64 --kl-base l --json -t 1
