run() { $TERN chat $TINY/qwen2-k.gguf -t 1 "$@"; }
printf 'one\n/set temp 3\n/set stop zz\n/set top_k 0\n/regen\ntwo\n/set\nthree\n' | run --chat-template chatml --seed 5 -n 6 --system 'Be brief.' >whole 2>err || cat err
printf 'one\n/set temp 3\n/set stop zz\n/set top_k 0\n/regen\n' | run --chat-template chatml --seed 5 -n 6 --system 'Be brief.' --session s >first 2>err || cat err
printf 'two\n/set\nthree\n/system\n' | run --chat-template chatml --session s >second 2>err || cat err
cat first second >all; sed -n '$p' all; sed '$d' all | cmp whole -
grep -E '^  (temp|top-k|seed|stop|predict)' second
