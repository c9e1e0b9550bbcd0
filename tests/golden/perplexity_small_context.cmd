# exit 2
$TERN perplexity m.gguf -f t -c 2
