printf 'root ::= [a-z ]*\n' >g
printf 'hello\n/regen\n/regen\nnext\n' | $TERN chat $TINY/qwen2-k.gguf --chat-template chatml --temp 0 -n 5 --grammar g -t 1 --stats
