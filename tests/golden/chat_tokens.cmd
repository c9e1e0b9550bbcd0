for m in llama-q8_0 qwen2-k; do
printf '/tokens two words, "x" \\\\ and\n/tokens é 東\tz\n"""/tokens\n\tz\n"""\n/tokens\n' | $TERN chat $TINY/$m.gguf --chat-template chatml --temp 0 -n 1 -t 1 -c 512
done
