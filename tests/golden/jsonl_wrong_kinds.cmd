# exit 1
while read -r line; do echo "$line" > p; $TERN run $TINY/llama-q8_0.gguf --prompts p 2>&1; done <<'END'
{"prompt": 1}
{"prompt": true}
{"prompt": null}
{"prompt": ["a", "b"]}
{"prompt": {"a": 1}}
{"prompt": "a", "stop": 1}
{"prompt": "a", "stop": [["b"]]}
{"prompt": "a", "stop": {"b": 1}}
{"prompt": "a", "temp": [0, 1]}
{"prompt": "a", "temp": true}
{"prompt": "a", "temp": {"5": 1}}
{"prompt": "a", "n": 1.5}
{"prompt": "a", "special": null}
{"prompt": "a", "special": "maybe"}
{"prompt": "a", "logit_bias": 5}
{"prompt": "a", "logit_bias": {"5": "1"}}
{"prompt": "a", "logit_bias": {"000000000000000000005x": 1}}
{"prompt": "a", "logit_bias": {"0000000000000000000000000000000000000000000000000000000000000005": 1}}
{"ids": 1}
{"ids": [1, "2"]}
{"ids": [1, 2.0]}
END
