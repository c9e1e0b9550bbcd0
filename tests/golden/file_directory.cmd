# exit 1
mkdir m.gguf; $TERN run m.gguf -p hi
