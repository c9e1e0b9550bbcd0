# exit 1
printf 'root ::= "a\\n" [c-e]+\n' > g.gbnf
printf 'a\ncx' | $TERN grammar g.gbnf --match -
