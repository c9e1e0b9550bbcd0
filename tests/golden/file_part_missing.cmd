# exit 1
printf GGUF > m-00001-of-00002.gguf; $TERN run m-00001-of-00002.gguf -p hi
