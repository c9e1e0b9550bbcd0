# exit 3
echo '{"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}' > s.json
$TERN schema s.json --match -
