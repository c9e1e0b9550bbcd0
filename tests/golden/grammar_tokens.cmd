# exit 1
printf 'root ::= "ab" </s> [a-c]+\n' > g.gbnf
$TERN grammar g.gbnf --model $TINY/llama-q8_0.gguf --match 'ab</s>bc'
$TERN grammar g.gbnf --model $TINY/llama-q8_0.gguf --match 'ab</s>bx'
$TERN grammar g.gbnf --model $TINY/llama-q8_0.gguf --match 'ab</s>'
$TERN grammar g.gbnf --model $TINY/llama-q8_0.gguf --match 'ab<s>b'
