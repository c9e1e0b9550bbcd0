$TERN template --help
