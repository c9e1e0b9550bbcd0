# exit 2
$TERN run m.gguf -p hi --prompts p
