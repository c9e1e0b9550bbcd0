$TERN run --help
