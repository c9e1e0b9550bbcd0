# exit 1
run() { m=$1; shift; $TERN run $TINY/$m.gguf -p hello -n 30 --temp 0 --ignore-eos --session s $* >/dev/null 2>err; code=$?; [ $code = 0 ] || { cat err >&2; cmp s kept; }; return $code; }
run llama-q4_0; cp s kept
run qwen3
run llama-q8_0
run llama-q4_0 --kv-k q8_0
run llama-q4_0 --exact
run llama-q4_0 -c 32
printf 'xyz' | dd of=s bs=1 seek=2000 conv=notrunc 2>/dev/null; cp s kept; run llama-q4_0
printf '\002' | dd of=s bs=1 seek=12 conv=notrunc 2>/dev/null; cp s kept; run llama-q4_0
head -c 700 kept > s; printf '\001' | dd of=s bs=1 seek=12 conv=notrunc 2>/dev/null; cp s kept; run llama-q4_0
echo another file > s; cp s kept; run llama-q4_0
