# exit 1
trap '' XFSZ; ulimit -f 20; $TERN build $TINY/llama-q8_0.gguf -o m.tern >/dev/null; code=$?; ls; exit $code
