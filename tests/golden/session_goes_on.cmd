ids=3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18
list() { sed 's/.*"'$1'": \[\([0-9, ]*\)\].*/\1/; s/ //g' $2; }
same() {
    rm -f s
    $TERN run $TINY/$1.gguf --ids $ids -n 20 --temp 0.9 --seed 5 --ignore-eos $2 $3 $4 $5 --session s --json > a 2>/dev/null || return
    more=$ids,$(list tokens a),7,8,9
    $TERN run $TINY/$1.gguf --ids $more -n 20 --temp 0.9 --seed 5 --ignore-eos $2 $3 $4 $5 --json > never 2>/dev/null
    $TERN run $TINY/$1.gguf --ids $more -n 20 --temp 0.9 --seed 5 --ignore-eos $2 $3 $4 $5 --session s --json > again 2>/dev/null
    echo $1 $2 $3 $4 $5 $(grep -ho '"cached_tokens": [0-9]*' never again)
    [ "$(list tokens never)" = "$(list tokens again)" ] || echo it differs
}
for m in llama-q4_0 qwen2-k qwen3 gemma3 gemma3-window8; do same $m; done
for t in f32 q8_0 q4_0; do same llama-q4_0 --kv-k $t --kv-v $t; same gemma3-window8 --kv-k $t; done
same llama-q4_0 --exact
