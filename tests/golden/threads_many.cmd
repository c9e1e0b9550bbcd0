# exit 2
$TERN run m.gguf -p hi -t 10000
