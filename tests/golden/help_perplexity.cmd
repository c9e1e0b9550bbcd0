$TERN perplexity --help
