# exit 0
$TERN run $TINY/qwen2-k.gguf --ids 3,1,4,1,5 -n 200 -c 256 --temp 0 --seed 1 --ignore-eos --json \
    --logprobs 1 2>/dev/null >out.json
sed -n 's/.*"tokens": \[\([^]]*\)\].*/\1/p' out.json | fold -sw 90
grep -o '"logprob": [-0-9.e]*' out.json | tail -n 3
