# exit 2
$TERN run m.gguf --frobnicate
