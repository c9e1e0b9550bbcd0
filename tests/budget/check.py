"""Holds the library's code size and the arenas of small models to the figures in sizes.csv.

    check.py SIZES TERN LIBRARY TINY [--write]

A line of sizes.csv is name,bytes. Code may shrink and grow by a hundredth unseen; an arena must
be equal to the byte, since plan and use are one walk. A change of either is then read in review:
run with --write and commit what changed. Code with all variants of an architecture stays under a
million bytes whatever is written. Answers 77 where numpy made no small models.
"""
import csv
import json
import pathlib
import subprocess
import sys

SLACK = {"code": 100}  # one part in so many
MOST = {"code": 1_000_000}
MODELS = ["llama-q4_0", "qwen2-k", "qwen3", "gemma3"]
LIMITS = ["-c", "512", "-t", "2", "--chunk", "64", "--sequences", "2"]


def code_bytes(library):
    out = subprocess.run(["size", "-t", library], capture_output=True, text=True, check=True).stdout
    text, data = out.strip().splitlines()[-1].split()[:2]
    return int(text) + int(data)


def measure(tern, library, tiny):
    sizes = {"code": code_bytes(library)}
    for model in MODELS:
        cmd = [tern, "plan", f"{tiny}/{model}.gguf", *LIMITS, "--json"]
        plan = json.loads(subprocess.run(cmd, capture_output=True, check=True).stdout)
        sizes.update({f"{model} {arena}": n for arena, n in plan["arenas"].items()})
    return sizes


def main():
    path, tern, library, tiny = sys.argv[1:5]
    if not pathlib.Path(tiny, f"{MODELS[0]}.gguf").exists():
        print("skipped: no small models (they need numpy)")
        return 77
    sizes = measure(tern, library, tiny)
    wrong = 0
    for name, most in MOST.items():
        if sizes[name] > most:
            print(f"{name}: {sizes[name]} bytes, {most} at most")
            wrong += 1
    if "--write" in sys.argv:
        with open(path, "w", newline="") as f:
            csv.writer(f, lineterminator="\n").writerows(sizes.items())
        return wrong > 0
    with open(path, newline="") as f:
        pinned = {name: int(n) for name, n in csv.reader(f)}
    for name in sorted(sizes.keys() | pinned.keys()):
        got, want = sizes.get(name), pinned.get(name)
        slack = want // SLACK[name] if want and name in SLACK else 0
        if got is None or want is None or abs(got - want) > slack:
            print(f"{name}: {got} bytes, {want} pinned")
            wrong += 1
    print(f"{len(sizes)} sizes, {wrong} differ")
    return wrong > 0


sys.exit(main())
