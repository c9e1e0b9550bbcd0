# exit 1
printf 'root ::= [a-z ]*\n' >g
printf 'a\none two three four five six seven eight nine ten eleven twelve one two three four five six seven eight nine ten eleven twelve\n/context\nshort\n/context\n' | $TERN chat $TINY/qwen2-k.gguf --chat-template chatml --temp 0 -n 5 --grammar g -t 1 -c 32
