"""Prints the project's headers that any machine can compile, one a line: list_headers.py ROOT."""
import tree

for f, path in tree.files(tree.root(), ("quant", "runtime", "platform", "tools"), (".h",)):
    if "/x86/" not in path and "/arm/" not in path:
        print(path)
