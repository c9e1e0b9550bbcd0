printf 'root ::= "yes" | "no"\n' >g.gbnf
printf 'a\nb\n/regen\n' | $TERN chat $TINY/qwen2-k.gguf --chat-template chatml -t 1 --grammar g.gbnf --seed 1 | grep -c -x -e yes -e no
