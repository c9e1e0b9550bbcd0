$TERN plan --help
