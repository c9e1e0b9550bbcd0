$TERN bench --help
