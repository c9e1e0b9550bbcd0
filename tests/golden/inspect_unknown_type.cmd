# exit 1
cp $TINY/llama-q8_0.gguf m.gguf
for t in 'blk.0.ffn_up.weight 143' 'blk.1.ffn_up.weight 034'; do
    set -- $t; at=$(grep -abo "$1" m.gguf | cut -d: -f1)
    printf "\\$2" | dd of=m.gguf bs=1 seek=$((at + ${#1} + 4 + 2 * 8)) conv=notrunc 2>/dev/null
done
$TERN run m.gguf -p hi
$TERN inspect m.gguf >out
grep -E 'cannot|n_layers|n_tensors|general.arch|tensors' out
$TERN inspect m.gguf --json --tensors | grep -oE '"runnable": [a-z]+|"types": .*|\{"name": "blk.[01].ffn_up.weight"[^}]*\}'
$TERN inspect m.gguf >out
