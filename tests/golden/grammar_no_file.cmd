# exit 2
$TERN schema; [ $? = 2 ] || exit 1
printf 'root ::= "a"\n' >g; $TERN grammar g --match a --match b; [ $? = 2 ] || exit 1
$TERN run m -p a --grammar g --json-mode; [ $? = 2 ] || exit 1
$TERN template m --messages m --variables 3; [ $? = 2 ] || exit 1
$TERN grammar
