$TERN build $TINY/llama-q8_0.gguf -o m.tern && $TERN build $TINY/llama-q8_0.gguf -o again.tern && cmp m.tern again.tern && ls
for m in $TINY/llama-q8_0.gguf m.tern; do $TERN run $m -p "hello" -n 8 --temp 0 --seed 1 --ignore-eos --logprobs 2 --json 2>/dev/null | sed 's|"timing": {[^}]*}, "memory": {[^}]*}||'; done | uniq | wc -l
for m in $TINY/llama-q8_0.gguf m.tern; do $TERN tokenize $m -p "hello there" --json; done | uniq | wc -l
$TERN inspect m.tern --verify | grep format
