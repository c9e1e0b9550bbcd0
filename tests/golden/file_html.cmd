# exit 1
printf '<!DOCTYPE html><html>not found</html>' > m; $TERN run m -p hi
