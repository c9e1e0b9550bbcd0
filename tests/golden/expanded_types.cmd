for t in q2_k iq3_s; do
    $TERN inspect $TINY/llama-$t.gguf | grep ' tensors '
    $TERN plan $TINY/llama-$t.gguf | grep expanded
    $TERN plan $TINY/llama-$t.gguf --json | grep -o '"expanded": {[^}]*}'
done
