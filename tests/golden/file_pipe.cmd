# exit 1
mkfifo m.gguf; $TERN plan m.gguf
