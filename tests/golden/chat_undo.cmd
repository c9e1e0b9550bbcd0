# exit 1
printf 'root ::= [a-z ]*\n' >g
printf 'hello\nand more\n/undo\n/context\n/undo\n/undo\n/context\n' | $TERN chat $TINY/qwen2-k.gguf --chat-template chatml --temp 0 -n 5 --grammar g -t 1 --stats
