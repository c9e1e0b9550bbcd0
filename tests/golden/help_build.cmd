$TERN build --help
