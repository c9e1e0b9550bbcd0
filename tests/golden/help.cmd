$TERN --help
