# exit 1
printf 'abcdefgh' > m; $TERN run m -p hi
