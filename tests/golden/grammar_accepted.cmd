printf 'root ::= "a" ("b" | [c-e]){2,3} # ends\n' > g.gbnf
$TERN grammar g.gbnf --match abe
printf abcd | $TERN grammar g.gbnf --match -
