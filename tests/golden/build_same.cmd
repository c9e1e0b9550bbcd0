# The order of weights is the recipe's, whatever compiler it went through.
for m in llama-q4_0 qwen2 gemma3; do
    $TERN build $TINY/$m.gguf -o $m.tern >/dev/null 2>&1 && sha256sum <$m.tern | cut -c 1-16
done
