# exit 1
$TERN build $TINY/llama-q8_0.gguf -o none/m.tern
