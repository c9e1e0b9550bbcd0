$TERN inspect --help
