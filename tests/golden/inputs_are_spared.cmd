# A model, any part of it, an image, and a text outlive a command that is told to write there.
cp $TINY/llama-split-0000?-of-00003.gguf . && $TERN build $TINY/llama-q4_0.gguf -o m.tern >/dev/null
ln -s llama-split-00002-of-00003.gguf link && printf 'hello world, hello world' >text
m=llama-split-00001-of-00003.gguf
sha256sum * >before
$TERN build $m -o $m; echo $?
$TERN build $m --object link; echo $?
$TERN build m.tern --c-array ./m.tern; echo $?
$TERN bench m.tern -t 1 --prefill 1 --decode 1 --repeat 1 --trace m.tern; echo $?
$TERN perplexity $m -f text -c 8 --save-logits link; echo $?
$TERN perplexity $m -f text -c 8 --save-logits ./text; echo $?
$TERN perplexity $m -c 8 --save-logits ./text <text; echo $?
$TERN run $m -p hello -n 1 --session $m; echo $?
$TERN build $m -o new --object new; echo $?
sha256sum --quiet -c before && ls
