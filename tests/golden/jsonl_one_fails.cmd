# exit 1
printf '{"prompt": "a", "n": 1, "temp": 0}\n{"prompt": "%s"}\n{"prompt": "b", "n": 1, "temp": 0}\n' "$(head -c 3000 /dev/zero | tr "\0" "x")" > p; $TERN run $TINY/llama-q8_0.gguf --prompts p --sequences 2 -c 64 > out; code=$?; grep -o '"stop": "[a-z]*"' out; exit $code
