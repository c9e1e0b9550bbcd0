# exit 1
$TERN build $TINY/llama-q8_0.gguf -o m.tern >/dev/null && head -c 100000 m.tern > n.tern; $TERN run n.tern -p hi
