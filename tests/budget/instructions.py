#!/usr/bin/env python3
"""Holds the instructions of a token on ARM to the figures in instructions.csv.

    instructions.py TERN CSV [--write] [--models NAME,...] [--lib FOLDER]

TERN is an aarch64 build, run under qemu-aarch64 with a counting plugin (tests/qemu/count.c), one
thread. A decoded token is what 8 more of them add to a run, a prefilled one what 32 more of the
prompt add, so that starting up does not count. Counts are the same on every machine, up to what
the C library does: one part in a hundred is let pass, in either direction, so that a change is
seen in review; --write renews the figures. i8mm may not need more than dotprod on any model, up to
the same hundredth: the C library takes other ways on its CPU. Loads and loaded bytes are printed
beside them. Answers 77 where QEMU, a compiler for the plugin or the small models (numpy) are not
there; models in $TERN_MODELS run where it has them.
"""
import argparse
import csv
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "models"))
SLACK = 100  # one part in so many
CPUS = {"neon": "cortex-a53", "dotprod": "cortex-a76", "i8mm": "max,sve=off"}
# What runs on which: every type with a kernel of its own has a small model.
SMALL = {"llama-q4_0": "dotprod", "llama-q4_1": "neon dotprod i8mm", "llama-q5_0": "dotprod",
         "llama-q5_1": "dotprod", "llama-q8_0": "neon dotprod i8mm", "llama-q4_k": "dotprod i8mm",
         "llama-q5_k": "dotprod", "llama-q6_k": "dotprod i8mm", "llama-f16": "neon",
         "gemma3": "dotprod", "qwen2-k": "dotprod"}
LARGE = {"SmolLM2-135M-Instruct.Q4_1.gguf": "dotprod i8mm"}
WHAT = ["instructions", "loads", "bytes loaded"]


class Skipped(Exception):
    """One line that says what is missing."""


def plugin(folder):
    compiler = next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None)
    if not compiler or not shutil.which("qemu-aarch64"):
        raise Skipped("needs qemu-aarch64 and a C compiler")
    so = f"{folder}/count.so"
    subprocess.run([compiler, "-O2", "-fPIC", "-shared", "-o", so, HERE.parent / "qemu/count.c"],
                   check=True)
    out = subprocess.run(["qemu-aarch64", "-plugin", f"file={so}", "/"], capture_output=True,
                         text=True, check=False)
    if "plugin" in out.stderr:  # qemu-user-static has none
        raise Skipped("needs a qemu-aarch64 that loads plugins")
    return so


def count(tern, so, variant, model, n_prompt, n_decoded):
    ids = ",".join(str(3 + i % 7) for i in range(n_prompt))
    env = {"PATH": os.environ["PATH"], "HOME": "/"}  # its size moves counts a little
    r = subprocess.run(["qemu-aarch64", "-cpu", CPUS[variant], *tern["qemu"], "-plugin",
                        f"file={so},out={so}.count", tern["path"], "run", model, "--ids", ids,
                        "-n", str(n_decoded), "-c", "256", "-t", "1", "--temp", "0",
                        "--ignore-eos"], env=env, capture_output=True, text=True, check=False)
    if r.returncode:
        sys.exit(f"{model}: exit {r.returncode}: {r.stderr.strip()[-200:]}")
    return [int(x) for x in pathlib.Path(f"{so}.count").read_text().split()]


def measure(tern, so, variant, model):
    """[instructions, loads, bytes] of a decoded and of a prefilled token."""
    one = count(tern, so, variant, model, 4, 1)
    decoded = [(b - a) // 8 for a, b in zip(one, count(tern, so, variant, model, 4, 9))]
    short, long = (count(tern, so, variant, model, n, 1) for n in (40, 72))
    return {"decode": decoded, "prefill": [(b - a) // 32 for a, b in zip(short, long)]}


def models(wanted, folder):
    """(name, path, variants)"""
    try:
        import make_models
    except ImportError as e:
        raise Skipped(f"no small models: {e}") from None
    names = [n for n in SMALL if not wanted or n in wanted]
    for name in names:
        make_models.write(folder, name)
    found = [(n, f"{folder}/{n}.gguf", SMALL[n]) for n in names]
    for name, variants in LARGE.items():
        path = pathlib.Path(os.environ.get("TERN_MODELS", "/nowhere"), name)
        if wanted and name not in wanted:
            continue
        if path.exists():
            found.append((name, str(path), variants))
        else:
            print(f"SKIPPED: {name} is not in $TERN_MODELS")
    return found


def compare(got, pinned, only):
    wrong = 0
    for key, values in got.items():
        want = pinned.get(key)
        if want is None or abs(values[0] - want) > want // SLACK:
            print(f"{' '.join(key)}: {values[0]} instructions, {want} pinned")
            wrong += 1
        name, variant, phase = key
        other = got.get((name, "dotprod", phase))
        if variant == "i8mm" and other and values[0] > other[0] + other[0] // SLACK:
            print(f"{' '.join(key)}: {values[0]} instructions, dotprod {other[0]}")
            wrong += 1
    for key in pinned.keys() - got.keys():
        if not only and key[0] in SMALL:
            print(f"{' '.join(key)}: pinned, and not measured")
            wrong += 1
    return wrong


def main():
    p = argparse.ArgumentParser()
    p.add_argument("tern")
    p.add_argument("csv")
    p.add_argument("--write", action="store_true")
    p.add_argument("--models", default="")
    p.add_argument("--lib", help="with the target's shared libraries that its C library lacks")
    args = p.parse_args()
    only = [x for x in args.models.split(",") if x]
    tern = {"path": args.tern, "qemu": ["-L", "/usr/aarch64-linux-gnu"]}
    if args.lib:
        tern["qemu"] += ["-E", f"LD_LIBRARY_PATH={args.lib}"]
    with tempfile.TemporaryDirectory() as folder:
        so = plugin(folder)
        got = {}
        for name, path, variants in models(only, folder):
            for variant in variants.split():
                for phase, values in measure(tern, so, variant, path).items():
                    got[name, variant, phase] = values
                    print(f"{name} {variant} {phase}: " + ", ".join(
                        f"{v / 1e6:.3f} M {w}" for v, w in zip(values, WHAT)))
    pinned = {}
    if os.path.exists(args.csv):
        with open(args.csv, newline="") as f:
            pinned = {tuple(row[:3]): int(row[3]) for row in csv.reader(f)}
    if args.write:
        pinned.update({key: values[0] for key, values in got.items()})
        with open(args.csv, "w", newline="") as f:
            csv.writer(f, lineterminator="\n").writerows([*k, v] for k, v in pinned.items())
        return 0
    wrong = compare(got, pinned, only)
    print(f"{len(got)} figures, {wrong} differ")
    return wrong > 0


try:
    sys.exit(main())
except Skipped as skipped:
    print(f"skipped: {skipped}")
    sys.exit(77)
