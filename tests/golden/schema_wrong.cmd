# exit 3
echo '{"properties": {"a": {"type": "array", "uniqueItems": true, "items": {"type": "integer"}}}}' > s.json
$TERN schema s.json
