echo '{"type": "array", "uniqueItems": true, "items": {"type": "null"}}' > s.json
echo '[null, null]' > d.json
$TERN schema s.json --lenient --match d.json
