# exit 1
printf '/set temp 0.5\n/set stop a b\n/set stop c\n/set think off\n/set think maybe\n/set top-k\n/set ignore_eos on\n/set c 9\n/set temp hot\n/set\n' | $TERN chat $TINY/qwen2-k.gguf --chat-template chatml --temp 0 -n 5 -t 1 --seed 3 --min-p 0.1
