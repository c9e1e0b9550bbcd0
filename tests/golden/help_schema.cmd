$TERN schema --help
