$TERN --version
