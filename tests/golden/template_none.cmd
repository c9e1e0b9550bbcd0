# exit 1
echo '[]' >m.json
$TERN template $TINY/llama-q8_0.gguf --messages m.json
$TERN template $TINY/llama-q8_0.gguf --template nonesuch --messages m.json
