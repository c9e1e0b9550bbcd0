# exit 1
$TERN build $TINY/llama-q8_0.gguf -o m.tern >/dev/null && printf 'x' | dd of=m.tern bs=1 seek=1000 conv=notrunc 2>/dev/null; $TERN run m.tern -p hi
