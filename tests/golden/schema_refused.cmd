# exit 1
echo '{"type": "string", "format": "date"}' > s.json
echo '"2023-02-29"' | $TERN schema s.json --match -
