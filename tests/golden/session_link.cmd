run() { $TERN run $TINY/llama-q8_0.gguf -t 1 -p "a text of more tokens than a block of the cache has" -n 40 --temp 0 --ignore-eos --session "$1" 2>&1 >/dev/null | sed -n 's/tern: prompt \(.*cached)\).*/\1/p; s/^tern run: //p'; }
mkdir d; ln -s d/real link; ln -s "$PWD/link" again; ln -s nowhere/s lost
run link; run again; run d/real; run lost
readlink link; ls d
printf 'hello\n' | $TERN chat $TINY/llama-q8_0.gguf --chat-template chatml -t 1 -n 2 --session lost
printf 'hello\n/save link\n' | $TERN chat $TINY/llama-q8_0.gguf --chat-template chatml -t 1 -n 2 --temp 0 >/dev/null; readlink link; ls d
