echo '[{"role": "user", "content": "<s>a</s>"}]' >m.json
printf '{{ bos_token }}{%% for m in messages %%}{{ m.content|trim|upper|lower }}</s>{%% endfor %%}' >t.jinja
$TERN template $TINY/llama-q8_0.gguf --template t.jinja --messages m.json --ids
