mkfifo f; { sleep 0.3; printf 'hel'; sleep 0.3; printf lo; } >f &
$TERN run $TINY/llama-q8_0.gguf -f f -n 3 --temp 0 --ignore-eos --json 2>/dev/null >a
$TERN run $TINY/llama-q8_0.gguf -p hello -n 3 --temp 0 --ignore-eos --json 2>/dev/null >b
for f in a b; do sed -n 's/"stop".*//p' $f >$f.text; done; cmp a.text b.text && grep -c prompt_tokens a.text
