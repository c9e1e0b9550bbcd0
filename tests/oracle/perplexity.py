#!/usr/bin/env python3
"""Perplexity beside llama.cpp's, of the same file on the same text: perplexity.py TERN [NAME...]

The text is the beginning of Python's own manual, over 20,000 tokens. Another Python has another
manual; the figures in results/perplexity.json hold for the texts whose sha256 they name, and the
check skips on any other. One is taken with

    perplexity.py --text >topics.txt; llama-perplexity -m MODEL -f topics.txt -c 512
"""
import hashlib
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import ternrun  # noqa: E402

NAMES = ["smollm2", "gemma3"]
# Of llama.cpp's figure. Far below it is as wrong as above: what is predicted would be seen.
MOST, LEAST, TOKENS = 1.003, 0.98, 20000


def check(tern, path, text, peer):
    """A line, and whether all is well."""
    with tempfile.NamedTemporaryFile("wb", suffix=".txt") as f:
        f.write(text)
        f.flush()
        n = len(tern.json("tokenize", path, "-f", f.name)["tokens"])
        got = tern.json("perplexity", path, "-f", f.name, "-c", 512, timeout=3000)
    ratio = got["perplexity"] / peer
    line = (f"{n} tokens, {got['tokens']} scored: perplexity {got['perplexity']:.4f}, llama.cpp "
            f"{peer:.4f} ({(ratio - 1) * 100:+.2f}%)")
    return line, n >= TOKENS and LEAST <= ratio <= MOST


def main():
    with open(os.path.join(HERE, "results", "perplexity.json")) as f:
        results = json.load(f)
    text = ternrun.topics(results["characters"]).encode()
    if sys.argv[1:] == ["--text"]:
        sys.stdout.buffer.write(text)
        return
    tern = ternrun.tern_from_args()
    known = results["texts"].get(hashlib.sha256(text).hexdigest())
    if known is None:
        ternrun.skip(f"the manual of Python {sys.version.split()[0]} is another text than those "
                     "that llama.cpp was measured on")
    ran, bad = 0, 0
    for name in sys.argv[2:] or NAMES:
        path, peer = ternrun.model(name), known.get(name)
        if path is None or peer is None:
            print(f"SKIPPED {name}: no " + ("model" if path is None else "figure for this text"))
            continue
        line, ok = check(tern, path, text, peer)
        print(f"{'' if ok else 'FAILED '}{name}: {line}")
        ran, bad = ran + 1, bad + (not ok)
    if ran == 0:
        ternrun.skip("no model that there is a figure for")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
