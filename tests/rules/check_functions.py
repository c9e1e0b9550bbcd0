"""Fails on what is too long: functions, files, lines, parameter lists, commands, recipes.

    check_functions.py ROOT

A function is what stands between a brace alone at the start of a line and its closing one.
Files of tables (a name with `table` or `unicode`) are free.
"""
import re

import tree

FUNCTION, FILE, LINE, PARAMETERS, COMMAND, RECIPE = 60, 600, 100, 7, 300, 150
TABLE = re.compile(r"table|grids|unicode_data")


def parameters(head):
    """Commas at the outer level of the parameter list that ends a function's head."""
    depth, n, any_text = 0, 0, False
    for c in reversed(head.rstrip()):
        depth += (c == ")") - (c == "(")
        if depth == 0:
            break
        n += c == "," and depth == 1
        any_text = True
    return n + any_text


def check_c(path, text, functions, heads):
    start, head = None, []
    for n, line in enumerate(text, 1):
        if line.startswith("{"):
            start = n
            name = re.findall(r"(\w+)\s*\(", " ".join(head))
            name = name[0] if name else "?"
            count = parameters(" ".join(head))
            if count > PARAMETERS:
                heads.add(path, n, f"{name} has {count} parameters, at most {PARAMETERS}", name)
            head = []
        elif line.startswith("}") and start:
            if n - start + 1 > FUNCTION:
                functions.add(path, start, f"{name} has {n - start + 1} lines, at most {FUNCTION}",
                              name)
            start, head = None, []
        elif start is None:
            head = [] if re.match(r"\s*$|#|/\*| \*|.*[;}]\s*(/\*.*)?$", line) else head + [line]


top = tree.root()
functions, heads = tree.Findings("function"), tree.Findings("parameters")
long_files, lines = tree.Findings("file"), tree.Findings("line")
commands, recipes = tree.Findings("command"), tree.Findings("recipe")
for f, path in tree.files(top, tree.CODE, tree.TEXT):
    text = tree.lines(f)
    code = f.suffix in (".c", ".h")
    if code and not TABLE.search(f.name):
        check_c(path, text, functions, heads)
    if f.suffix != ".md" and not TABLE.search(f.name):
        if len(text) > FILE:
            long_files.add(path, len(text), f"{len(text)} lines, at most {FILE}")
        for n, line in enumerate(text, 1):
            if len(line) > LINE and f.suffix not in (".txt", ".cmd"):
                lines.add(path, n, f"{len(line)} columns, at most {LINE}")
    if re.match(r"tools/cmd_\w+\.c", path) and len(text) > COMMAND:
        commands.add(path, len(text), f"a command of {len(text)} lines, at most {COMMAND}")
    if re.match(r"runtime/recipes/\w+\.c", path) and len(text) > RECIPE:
        recipes.add(path, len(text), f"a recipe of {len(text)} lines, at most {RECIPE}")
found = sum(x.n for x in (functions, heads, long_files, lines, commands, recipes))
raise SystemExit(found > 0)
