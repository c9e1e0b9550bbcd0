printf 'root ::= [a-z ]*\n' >g
printf '/system\n/system You are a cat.\n/system\nhello\n/tokens\n/system -\n/tokens\n' | $TERN chat $TINY/qwen2-k.gguf --chat-template chatml --temp 0 -n 5 --grammar g -t 1 --system 'You are a dog.'
