# exit 1
echo '[{"role": "user", "content": "a"}]' >m.json
printf '\n{{ raise_exception("only " ~ messages|length) }}' >t.jinja
$TERN template $TINY/llama-q8_0.gguf --template t.jinja --messages m.json
