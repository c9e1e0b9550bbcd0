# exit 1
printf 'one\ntwo\nthree\nfour\n/undo 2\n/context\n/undo 3\n/undo 0\n/undo x\n/regen now\n/context all\n/help me\n/quit 5\n/undo 2\n/undo 2\n/context\n' | $TERN chat $TINY/qwen2-k.gguf --chat-template chatml --temp 0 -n 1 -t 1
