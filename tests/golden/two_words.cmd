# exit 2
$TERN plan m.gguf n.gguf
