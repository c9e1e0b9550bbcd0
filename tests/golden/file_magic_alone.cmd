# exit 1
printf GGUF > m; $TERN plan m
