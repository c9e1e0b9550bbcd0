$TERN bench $TINY/llama-q4_0.gguf -t 1,2 --prefill 8 --decode 2 --batch 1,2 --repeat 1 --json | sed 's/}, {/},\n{/g'
