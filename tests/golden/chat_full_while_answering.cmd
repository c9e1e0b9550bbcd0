printf '{%% for m in messages %%}{{ m.content }}\n{%% endfor %%}' >t
printf 'one\ntwo\n/set predict 70\nthree\n/context\n' | $TERN chat $TINY/llama-q8_0.gguf --chat-template t --temp 0 -n 3 -t 1 -c 64 --ignore-eos --stats | tr -cd 'a-zA-Z0-9 ()%;,\n'
