# exit 1
echo '[]' >m.json
printf 'a\n{%% include "x" %%}' >t.jinja
$TERN template $TINY/llama-q8_0.gguf --template t.jinja --messages m.json
