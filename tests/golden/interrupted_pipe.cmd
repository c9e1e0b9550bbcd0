# exit 1
mkfifo f; timeout --preserve-status -s INT -k 5 2 $TERN run $TINY/llama-q4_0.gguf -f f
