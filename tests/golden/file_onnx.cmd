# exit 1
printf '\010\007\022\007pytorch\032' > m; $TERN run m -p hi
