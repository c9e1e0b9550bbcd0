printf "{%% for m in messages %%}[{{ m.role }}]{{ m.content.split('</think>')|last }}{%% endfor %%}" >t
printf '{%% if add_generation_prompt %%}[assistant]<think>\n{%% endif %%}' >>t
run() { printf 'hello\n' | $TERN chat $TINY/llama-q8_0.gguf --chat-template t -t 1 -n 30 --temp 0 --ignore-eos "$@"; }
run --think-budget 3 >a 2>b; run --think-budget 3 --stop '</think>' --stop '<think>' >c 2>d
cmp a c; cmp b d
first=$(head -c 2 a | tail -c 1); run --think-budget 3 --stop "$first" 2>&1 | tr -cd '][a-z \n'
