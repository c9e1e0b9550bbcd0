# exit 1
$TERN run m.gguf -p hi
