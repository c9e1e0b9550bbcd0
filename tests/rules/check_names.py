"""Fails on names against the style: check_names.py ROOT.

File stems are unique in the tree (headers and sources of one stem belong together); none is
called utils, common, misc or helpers; no type of ours ends in _t; a unit test's stem is that of
a source; static functions carry no prefix tern_ and no function-like macro hides code outside
of tests.
"""
import re

import tree

top, out = tree.root(), tree.Findings("name")
stems = {}
for f, path in tree.files(top, ("quant", "runtime", "platform", "tools"), (".c", ".h")):
    stems.setdefault(f.stem, set()).add(path)
    if f.stem in ("utils", "util", "common", "misc", "helpers", "helper"):
        out.add(path, 1, f"a file called {f.stem} says nothing of its subject")
    for n, line in enumerate(tree.lines(f), 1):
        m = re.match(r"static\s[^=;(]*\b(tern_\w+)\s*\(", line)
        if m and f.suffix == ".c":
            out.add(path, n, f"{m[1]} is static and needs no prefix", m[1])
        if re.match(r"\s*typedef\b.*\b(?!u?int)\w+_t\s*;", line):
            out.add(path, n, "a type of ours ends in _t")
        m = re.match(r"\s*#\s*define\s+(\w+)\(", line)
        if m:
            out.add(path, n, f"a function-like macro, {m[1]}", m[1])
for stem, paths in stems.items():
    folders = {p.rsplit("/", 1)[0] for p in paths}
    if len(folders) > 1 and sum(p.endswith(".c") for p in paths) > 1:
        out.add(sorted(paths)[0], 1, f"stem {stem} is there twice: {' '.join(sorted(paths))}")
for f, path in tree.files(top, ("tests/unit",), (".c",)):
    stem = f.stem.removeprefix("test_")
    if f.stem.startswith("test_") and stem not in stems:
        out.add(path, 1, f"no source has the stem {stem}")
out.end()
