#!/usr/bin/env python3
"""Whole runs of small models in a build with -Dlive_check=true: no kernel differs from the
reference on what a model really gives it.

    live_check.py TERN [NAME...]
"""
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "models")]
import make_models  # noqa: E402
import ternrun  # noqa: E402

# Together: every direct type, one with codes alone, float matrices, windows, odd heads.
MODELS = ["llama-q4_0", "llama-q4_1", "llama-q5_1", "llama-f32", "llama-f16", "llama-mixed",
          "llama-iq4_xs", "llama-head20", "qwen2-k", "qwen3", "gemma3"]
WAYS = [["-t", 1, "--chunk", 64],
        ["-t", 2, "--chunk", 7, "--kv-k", "q8_0", "--kv-v", "q8_0"],
        ["-t", 2, "--chunk", 7, "--kv-k", "q4_0", "--kv-v", "q4_0"],
        ["-t", 2, "--exact", "--kv-k", "f32", "--kv-v", "f32"]]
LINE = re.compile(r"^live check: (\d+) calls compared, (\d+) differ, (\d+) skipped$", re.M)


def main():
    tern = ternrun.Tern(sys.argv[1])
    variants = tern.json("devices")["variants"]
    if not any(v["usable"] for v in variants if v["name"] != "reference"):
        ternrun.skip("this machine has only the reference")
    calls, runs, wrong = 0, 0, []
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[2:] or MODELS:
            path = os.path.join(folder, make_models.write(folder, name)[0])
            ids = ternrun.ids(7, 270, make_models.n_vocab(name))
            for way in WAYS:
                r = tern.raw("run", path, "--ids", ",".join(map(str, ids)), "-n", 4, "--temp", 0,
                             "--ignore-eos", "-c", 300, *way)
                text = r.stderr.decode(errors="replace")
                found = LINE.search(text)
                n, differ, skipped = map(int, found.groups()) if found else (0, 0, 0)
                calls, runs = calls + n, runs + 1
                if r.returncode or n == 0 or differ or skipped:
                    wrong.append(f"{name} {' '.join(map(str, way))}: {text.strip()[-300:]}")
    for w in wrong:
        print("FAILED " + w)
    print(f"{calls} calls compared in {runs} runs, {len(wrong)} runs failed")
    sys.exit(len(wrong) > 0)


if __name__ == "__main__":
    main()
