# The run that makes the image counts that in its start.
for i in 1 2; do $TERN run $TINY/llama-q8_0.gguf --cache c -p "hello" -n 1 -t 1 --temp 0 --ignore-eos --json 2>/dev/null; done |
    python3 -c 'import json, sys; a, b = (json.loads(x)["timing"] for x in sys.stdin); print(a["load_s"] > 1.5 * b["load_s"], a["first_token_s"] > a["load_s"])'
