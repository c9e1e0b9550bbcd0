# exit 1
while read -r line; do echo "$line" > p; $TERN run $TINY/llama-q8_0.gguf --prompts p 2>&1; done <<'END'
{"prompt": "a", "temp": 1e999}
{"prompt": "a", "temp": "NaN"}
{"prompt": "a", "temp": NaN}
{"prompt": "a", "temp": null}
{"prompt": "a", "temp": -1}
{"prompt": "a", "top_p": 1.0000001}
{"prompt": "a", "top_p": -0.1}
{"prompt": "a", "top_p": "nan"}
{"prompt": "a", "min_p": 1.5}
{"prompt": "a", "min_p": -1}
{"prompt": "a", "top_k": -2147483648}
{"prompt": "a", "top_k": 9007199254740992}
{"prompt": "a", "top_k": 1.5}
{"prompt": "a", "n": -2}
{"prompt": "a", "n": 2147483647}
{"prompt": "a", "n": 9223372036854775808}
{"prompt": "a", "repeat_last_n": -2}
{"prompt": "a", "repeat_penalty": 0}
{"prompt": "a", "seed": -1}
{"prompt": "a", "seed": 1.5}
{"prompt": "a", "logprobs": -1}
{"prompt": "a", "logprobs": "3x"}
END
