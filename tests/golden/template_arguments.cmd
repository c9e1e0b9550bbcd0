cat >m.json <<'END'
[{"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function",
  "function": {"name": "f", "arguments": "{\"b\": 1, \"a\": [2.50, null]}"}}]}]
END
printf '{{ messages[0].tool_calls[0].function.arguments|tojson }} {{ x }}' >t.jinja
$TERN template $TINY/llama-q8_0.gguf --template t.jinja --messages m.json --variables '{"x": 5}'
