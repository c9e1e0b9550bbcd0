cat >m.json <<'END'
[{"role": "developer", "content": "D"}, {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
 {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": "{\"a\": 1}"}}]}]
END
echo '[{"type": "function", "function": {"name": "f"}}]' >t.json
printf '{%% for m in messages %%}{{ m.role }}:{{ m.content }}{%% for c in m.tool_calls %%}{{ "<" + c.function.arguments + ">" }}{%% endfor %%}\n{%% endfor %%}' >t.jinja
$TERN template $TINY/llama-q8_0.gguf --template t.jinja --messages m.json --adapt
printf 'x{%% for m in messages %%}{%% for p in m.content if m.content is not string %%}{{ p.text }}{%% endfor %%}{%% endfor %%}tools' >t.jinja
$TERN template $TINY/llama-q8_0.gguf --template t.jinja --messages m.json --adapt --tools t.json
printf '{{ messages[0].content }}' >t.jinja
$TERN template $TINY/llama-q8_0.gguf --template t.jinja --messages m.json --adapt --tools t.json
