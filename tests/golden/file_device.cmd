# exit 1
$TERN tokenize /dev/zero -p hi
