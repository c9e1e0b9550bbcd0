# exit 2
$TERN run
