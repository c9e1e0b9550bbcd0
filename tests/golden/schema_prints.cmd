echo '{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", 1]}}, "required": ["a"], "additionalProperties": false}' > s.json
$TERN schema s.json | head -12
echo '{"a": 1, "b": "x"}' | $TERN schema s.json --match -
