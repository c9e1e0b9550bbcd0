# exit 1
$TERN build $TINY/llama-q8_0.gguf -o m.tern >/dev/null && printf 'xyz' | dd of=m.tern bs=1 seek=200000 conv=notrunc 2>/dev/null; $TERN inspect m.tern --verify
