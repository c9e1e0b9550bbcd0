# exit 1
for option in '"threads": 2' '"t": 2' '"ctx": 64' '"c": 64' '"chunk": 8' '"kv_k": "f32"' '"kv-v": "f32"' \
    '"exact": true' '"sequences": 2' '"json": true' '"file": "x"'; do
    echo "{\"prompt\": \"a\", $option}" > p; $TERN run $TINY/llama-q8_0.gguf --prompts p
done
