# exit 2
$TERN frobnicate
