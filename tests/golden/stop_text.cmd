$TERN run $TINY/llama-q8_0.gguf -p hello -n 9 --temp 0 --logit-bias 70=1000 --stop CCC 2>&1 | grep -o '^C*$\|generated 3\|ended by .*'
