$TERN grammar --help
