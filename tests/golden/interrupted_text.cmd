# exit 1
mkfifo f; sleep 50 >f 2>/dev/null & s=$!; $TERN run $TINY/llama-q4_0.gguf -f f & p=$!; sleep 1; while kill -INT $p 2>/dev/null; do sleep 2; done; wait $p; code=$?; kill $s; exit $code
