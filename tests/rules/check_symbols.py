"""Fails when the core imports what the promises forbid, or a name lacks the prefix.

    check_symbols.py NM ARCHIVE...
"""
import subprocess
import sys

MEMORY = {"memcpy", "memmove", "memset", "memcmp", "memchr", "strlen", "strcmp",
          "strncmp", "strchr"}
EXACT = {"sqrtf", "fmaf", "floorf", "ceilf", "truncf", "rintf", "nearbyintf", "fabsf", "fminf",
         "fmaxf", "copysignf", "sqrt", "fma", "floor", "ceil", "trunc", "rint", "fabs", "ldexpf",
         "ldexp"}
COMPILER = {"_GLOBAL_OFFSET_TABLE_", "__stack_chk_fail", "__stack_chk_guard", "__cpu_model",
            "__cpu_indicator_init", "getauxval"}

bad = 0
for archive in sys.argv[2:]:
    defined, undefined = set(), {}
    listing = subprocess.run([sys.argv[1], "-A", "-g", archive], capture_output=True, text=True,
                             check=True).stdout
    for line in listing.splitlines():
        where, kind, name = line.split(":")[-2].strip(), *line.split()[-2:]
        if kind in "Uw":
            undefined.setdefault(name, where)
        else:
            defined.add(name)
    for name in sorted(undefined.keys() - defined - MEMORY - EXACT - COMPILER):
        bad += 1
        print(f"{archive}: {undefined[name]} imports {name}")
    for name in sorted(n for n in defined if not n.startswith("tern_")):
        bad += 1
        print(f"{archive}: exports {name}, which has no prefix tern_")
sys.exit(bad > 0)
