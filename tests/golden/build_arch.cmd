# exit 2
$TERN build $TINY/llama-q8_0.gguf --object m.o --arch sparc
