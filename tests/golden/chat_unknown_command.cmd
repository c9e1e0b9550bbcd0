# exit 1
printf 'root ::= [a-z ]*\n' >g
printf '/hepl me\n//etc\n/tokens\n' | $TERN chat $TINY/qwen2-k.gguf --chat-template chatml --temp 0 -n 5 --grammar g -t 1
