# exit 1
printf 'PK\003\004 and so on' > m; $TERN run m -p hi
