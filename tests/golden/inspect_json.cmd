$TERN inspect $TINY/gemma3.gguf --json --tensors --program
