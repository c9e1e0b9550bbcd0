# exit 3
echo '{"properties": {"a": {"type": "array", "contains": {"type": "integer"}}}}' > s.json
$TERN schema s.json
