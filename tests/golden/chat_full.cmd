printf 'root ::= [a-z ]*\n' >g
printf 'one two three\n/system be brief\nfour five six\nseven eight nine\nten eleven twelve\n/tokens\n/context\n' | $TERN chat $TINY/qwen2-k.gguf --chat-template chatml --temp 0 -n 5 --grammar g -t 1 -c 64 --stats
