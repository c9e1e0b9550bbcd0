TERN_CPU=reference $TERN devices --json
