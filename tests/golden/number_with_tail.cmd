# exit 2
$TERN run m.gguf -p hi --top-p 0.5x
