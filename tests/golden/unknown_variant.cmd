# exit 2
TERN_CPU=abacus $TERN run m.gguf -p hi
