# exit 1
trap '' XFSZ
$TERN run $TINY/llama-q8_0.gguf -p hello -n 30 --ignore-eos --session s >/dev/null 2>&1; cp s kept
(ulimit -f 1; $TERN run $TINY/llama-q8_0.gguf -p hello -n 200 --ignore-eos --session s 2>&1 >/dev/null | tail -n 1 >&2)
cmp s kept; ls
mkdir d; $TERN run $TINY/llama-q8_0.gguf -p hello -n 2 --ignore-eos --session d >/dev/null
$TERN run $TINY/llama-q8_0.gguf -p hello -n 2 --ignore-eos --session none/s 2>&1 >/dev/null | tail -n 1 >&2
$TERN run $TINY/llama-q8_0.gguf -p hello -n 2 --no-kv-sharing --session s; [ $? = 2 ] && exit 1
