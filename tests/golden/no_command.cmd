# exit 2
$TERN
