$TERN chat --help
