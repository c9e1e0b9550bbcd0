$TERN build $TINY/llama-split-00001-of-00003.gguf -o m.tern >/dev/null
for m in $TINY/llama-split-00001-of-00003.gguf m.tern; do $TERN run $m -p "hello" -n 8 --temp 0 --ignore-eos 2>/dev/null | md5sum; done | uniq | wc -l
