# exit 1
printf '\100\0\0\0\0\0\0\0{"__metadata__":{}}' > m; $TERN run m -p hi
