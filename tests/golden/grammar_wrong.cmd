# exit 3
printf 'root ::= a "x"\na ::= b "y"\nb ::= "" a\n' > g.gbnf
$TERN grammar g.gbnf --match x
