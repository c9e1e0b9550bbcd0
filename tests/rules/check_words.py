"""Fails on words that do not belong into the project: check_words.py ROOT.

Paths of one machine, addresses of registries, marks of unfinished work, banners, notes of
history. The patterns are put together from pieces so that this file does not find itself.
"""
import re

import tree

WORDS = [
    ("a path of one machine", r"(?<![\w.$}/-])/(wo" "rk|far" "m|ho" "me)/"),
    ("a number of a discussion", r"\biss" r"ue #?\d+\b"),
    ("a mark of unfinished work", r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b"),
    ("a registry's address",
     r"(py" r"pi|python" r"hosted|registry\.np" r"mjs|hugging" r"face)\.(org|com|co)\b"),
    ("a banner", r"[/#*]\s*[-=*#]{20,}"),
    ("a note of who or when", r"\b(sub" r"agent|this sess" r"ion|work" r"place)\b"),
]

top, out = tree.root(), tree.Findings("word")
listed = list(tree.files(top, tree.CODE, tree.TEXT))
listed += [(f, f.name) for f in sorted(top.glob("*")) if f.suffix in tree.TEXT]
listed += [(f, ".ci/" + f.name) for f in sorted((top / ".ci").glob("*"))]
for f, path in listed:
    for n, line in enumerate(tree.lines(f), 1):
        for what, pattern in WORDS:
            m = re.search(pattern, line)
            if m:
                out.add(path, n, f"{what}: {m[0]}")
        bare = re.sub(r'"[^"]*"', '""', line)
        if f.suffix in (".c", ".h") and re.search(r"(^|[\s;{}])//", bare):
            out.add(path, n, "a // comment; comments are /* */")
out.end()
