# exit 1
echo '[{"role": "user", }]' >m.json
$TERN template $TINY/llama-q8_0.gguf --template chatml --messages m.json
