printf 'root ::= [a-z ]*\n' >g
printf '"""\n/quit\n\nb\n"""\none \\\ntwo\n/tokens\n/tokens ab\ncd\\\n' | $TERN chat $TINY/qwen2-k.gguf --chat-template chatml --temp 0 -n 5 --grammar g -t 1
