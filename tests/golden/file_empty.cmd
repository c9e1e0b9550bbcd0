# exit 1
: > m.gguf; $TERN inspect m.gguf
