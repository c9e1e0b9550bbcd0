run() { $TERN chat $TINY/qwen2-k.gguf --chat-template chatml -n 6 -t 1 --seed 7 "$@"; }
printf 'hello\n/set temp 2\n/regen\nmore\nlast\n' | run >whole 2>err || cat err
printf 'hello\n/set temp 2\n/regen\n' | run --session s >first 2>err || cat err
printf 'more\n' | run --session s >>first 2>err || cat err
printf 'last\n' | run --session s --stats >>first
cmp whole first
printf '/load s\n/context\n/undo\n/save t\n/load none\n/load err\n' | run
ls
