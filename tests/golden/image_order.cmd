# exit 1
$TERN build $TINY/llama-q8_0.gguf -o m.tern >/dev/null && printf '\001\002\003\004' | dd of=m.tern bs=1 seek=8 conv=notrunc 2>/dev/null; $TERN run m.tern -p hi
