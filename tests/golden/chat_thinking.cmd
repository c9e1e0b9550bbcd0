printf "{%% for m in messages %%}[{{ m.role }}]{{ m.content.split('</think>')|last }}{%% endfor %%}" >t
printf '{%% if add_generation_prompt %%}[assistant]<think>\n{%% endif %%}' >>t
printf 'root ::= [a-z]{6}\n' >g
run() { $TERN chat $TINY/llama-q8_0.gguf --chat-template t -t 1 --stats "$@"; }
printf 'hello\nagain\n/set think off\nonce more\n' | run --temp 0 --think-budget 3 --grammar g 2>err; code=$?
tr -cd '][a-zA-Z0-9 ()%;:/.,\n' <err >&2; exit $code
