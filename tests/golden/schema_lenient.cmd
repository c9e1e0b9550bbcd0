echo '{"type": "array", "uniqueItems": true, "items": {"type": "number"}}' > s.json
echo '[1, 1]' > d.json
$TERN schema s.json --lenient --match d.json
