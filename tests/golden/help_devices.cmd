$TERN devices --help
