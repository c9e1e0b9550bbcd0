echo '{"type": "object", "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "boolean"}}, "required": ["a", "b"], "additionalProperties": false}' > s.json
$TERN run $TINY/llama-q8_0.gguf -p a --schema s.json --seed 3 --temp 2 -t 1 2> /dev/null > d.json
$TERN schema s.json --match d.json
$TERN run $TINY/llama-q8_0.gguf -p a --json-mode --seed 3 --temp 2 -n 20 -t 1 2> /dev/null | head -c 1
printf 'a\n' | $TERN chat $TINY/qwen2-k.gguf --chat-template chatml -t 1 --schema s.json --seed 1 2> /dev/null > d.json
$TERN schema s.json --match d.json
printf 'a\n' | $TERN chat $TINY/qwen2-k.gguf --chat-template chatml -t 1 --json-mode --seed 1 -n 20 2> /dev/null | head -c 1
