$TERN tokenize --help
