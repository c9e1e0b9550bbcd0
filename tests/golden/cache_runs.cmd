run() { $TERN run $1 $2 $3 -p "hello" -n 8 --temp 0 --ignore-eos 2>/dev/null; echo; }
cp $TINY/llama-q8_0.gguf m.gguf
{ run m.gguf; run m.gguf --cache c; run m.gguf --cache c; } | uniq | wc -l
ls c | wc -l
printf 'xyz' | dd of=$(ls c/*) bs=1 seek=200000 conv=notrunc 2>/dev/null
{ run m.gguf; run m.gguf --cache c; } | uniq | wc -l
$TERN inspect c/* --verify | grep format
head -c 5000 $(ls c/*) > half; cat half > $(ls c/*)
{ run m.gguf; run m.gguf --cache c; } | uniq | wc -l
$TERN inspect c/* --verify | grep format
touch m.gguf; { run m.gguf; run m.gguf --cache c; } | uniq | wc -l
ls c | wc -l
