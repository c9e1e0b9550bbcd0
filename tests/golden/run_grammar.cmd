printf 'root ::= "yes" | "no, " [a-z]{3,5}\n' > g.gbnf
$TERN run $TINY/llama-q8_0.gguf -p a --grammar g.gbnf --seed 3 --temp 2 -t 1 2> /dev/null | $TERN grammar g.gbnf --match -
$TERN run $TINY/llama-q8_0.gguf -p a --grammar g.gbnf --temp 0 -t 1 2> /dev/null | $TERN grammar g.gbnf --match -
