cat >t <<'END'
{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if tools %}<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>{% endif %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}
END
cat >g <<'END'
root ::= "I look. <tool_call>\n{\"name\": \"look\", \"arguments\": {\"at\": [1, \"x\"]}}\n</tool_call>\n<tool_call>\n{\"name\": \"go\", \"arguments\": {}}\n</tool_call>"
END
printf 'hello\nagain\n' | $TERN chat $TINY/qwen2-k.gguf --chat-template t -t 1 --grammar g --temp 0 --stats
