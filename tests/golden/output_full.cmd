# exit 1
$TERN --version > /dev/full
