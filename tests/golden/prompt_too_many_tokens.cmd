# exit 1
$TERN run $TINY/llama-q8_0.gguf -c 16 -p "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
