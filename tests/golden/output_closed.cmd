# exit 1
$TERN --help >&-
