# exit 1
printf 'hello\n' | $TERN chat $TINY/qwen3.gguf -t 1 -c 256 -n 4 --seed 1 --chat-template chatml --session s >/dev/null 2>&1
before=$(sha256sum <s)
$TERN run $TINY/qwen3.gguf -t 1 -c 256 -p other -n 2 --session s
code=$?
[ "$before" = "$(sha256sum <s)" ] && stat -c %a s
exit $code
