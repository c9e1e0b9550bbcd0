printf 'root ::= [a-z ]{3,12}\n' >g
run() { $TERN chat $TINY/qwen2-k.gguf -t 1 --chat-template chatml $held "$@"; }
for held in '' '--grammar g'; do
rm -f s
printf 'one\n/set temp 3\n/set stop zz\n/set top_k 0\n/regen\ntwo\n/set\nthree\n' | run --seed 5 -n 6 --system 'Be brief.' >whole 2>err || cat err
printf 'one\n/set temp 3\n/set stop zz\n/set top_k 0\n/regen\n' | run --seed 5 -n 6 --system 'Be brief.' --session s >first 2>err || cat err
printf 'two\n/set\nthree\n/system\n' | run --session s >second 2>err || cat err
cat first second >all; sed -n '$p' all; sed '$d' all | cmp whole -
grep -E '^  (temp|top-k|seed|stop|predict)' second
done
printf 'x\n' | $TERN chat $TINY/qwen3.gguf -t 1 --chat-template chatml --session s; echo $?
cp s kept; printf 'x\n' | run --kv-v q8_0 --session s; echo $?; cmp s kept
