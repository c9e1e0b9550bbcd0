# exit 1
echo '{"properties": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#/properties/a"}]}}}' > s.json
$TERN chat $TINY/qwen2-k.gguf --chat-template chatml --schema s.json < /dev/null
$TERN run $TINY/llama-q8_0.gguf -p a --schema s.json
