printf 'root ::= [a-z ]{9}\n' >g.gbnf
printf 'hello\nand more\n\nlast' | $TERN chat $TINY/qwen2-k.gguf --chat-template chatml --temp 2 --seed 4 -t 1 --stats --grammar g.gbnf
