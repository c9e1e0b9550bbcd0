"""Fails when a file includes a header that its folder may not see: check_includes.py ROOT.

The arrows: tools -> runtime/tern.h, platform/os; platform -> runtime, quant/format.h; runtime ->
quant/format.h; quant -> the C library. The core's C library is the part without an operating
system. A backend never includes another backend, cpu/x86 never cpu/arm. Tests see anything.
"""
import re

import tree

LIBRARY = {"stddef.h", "stdint.h", "stdbool.h", "stdarg.h", "limits.h", "string.h", "math.h",
           "float.h", "stdatomic.h"}
# Folder, what it may include of the project, what of the C library (None: anything). The
# longest folder that a path begins with decides.
MAY = [
    ("quant/", ["quant/"], LIBRARY),
    ("runtime/", ["runtime/", "quant/format.h"], LIBRARY),
    ("platform/cpu/x86/", ["platform/cpu/", "runtime/", "quant/", "config.h"],
     LIBRARY | {"immintrin.h", "cpuid.h"}),
    ("platform/cpu/arm/", ["platform/cpu/", "runtime/", "quant/", "config.h"],
     LIBRARY | {"arm_neon.h", "arm_acle.h", "sys/auxv.h"}),
    ("platform/cpu/", ["platform/cpu/", "runtime/", "quant/", "config.h"], LIBRARY),
    ("platform/os/", ["platform/os/", "runtime/tern.h", "runtime/error.h", "config.h"], None),
    ("platform/", ["platform/", "runtime/", "quant/format.h", "config.h"], LIBRARY),
    ("tools/examples/", ["tern.h"], None),
    ("tools/", ["tools/", "runtime/tern.h", "platform/os/", "platform/cpu/live_check.h",
                "config.h"], None),
]
NEVER = [("platform/cpu/x86/", "platform/cpu/arm/"), ("platform/cpu/arm/", "platform/cpu/x86/"),
         ("platform/cpu/ref/", "platform/cpu/x86/"), ("platform/cpu/ref/", "platform/cpu/arm/")]

top, out = tree.root(), tree.Findings("include")
for f, path in tree.files(top, ("quant", "runtime", "platform", "tools"), (".c", ".h")):
    rows = [r for r in MAY if path.startswith(r[0])]
    _, ours, library = max(rows, key=lambda r: len(r[0]))
    for n, line in enumerate(tree.lines(f), 1):
        m = re.match(r'\s*#\s*include\s+([<"])([^>"]+)', line)
        if not m:
            continue
        kind, name = m.groups()
        if kind == '"':
            wrong = not any(name == a or a.endswith("/") and name.startswith(a) for a in ours)
            wrong |= any(path.startswith(a) and name.startswith(b) for a, b in NEVER)
        else:
            wrong = library is not None and name not in library
            wrong &= not (name == "tern.h" and path.startswith("tools/examples/"))
        if wrong:
            out.add(path, n, f"may not include {name}")
out.end()
