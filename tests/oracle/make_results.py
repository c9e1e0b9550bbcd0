#!/usr/bin/env python3
"""Stores what llama.cpp answers on the real models: make_results.py [NAME...] -> results/NAME.json

Needs llama-server (TERN_LLAMA: its folder) and the models (TERN_MODELS). Greedy, 40 tokens a
prompt, ten best log-probabilities a token; the ids of the prompts and of some awkward texts.
Beside each token stands what the float reference says of it: how far its two best are apart,
and the log-probabilities of llama.cpp's three best. It tells rounding noise from mistakes.
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np  # noqa: E402

import peer  # noqa: E402
import ternrun  # noqa: E402
from reference import Reference  # noqa: E402

PROMPTS = [
    "The chemical symbol for gold is",
    "def fibonacci(n):\n    ",
    "Once upon a time, in a village by the sea,",
    "1, 1, 2, 3, 5, 8, 13,",
    "Le chat est assis sur",
    "Q: Why is the sky blue?\nA:",
    "{\"name\": \"Ada\", \"born\":",
    "\u65e5\u672c\u306e\u9996\u90fd\u306f",
    "The three laws of thermodynamics are:\n1.",
    "for (int i = 0; i < n; i++) {\n\t",
    "She opened the old wooden box and found a letter, a key and a map. The letter said that the "
    "key opened a door in the cellar of the lighthouse, and that behind the door",
    "Monday, Tuesday, Wednesday,",
]
TEXTS = [
    "", " ", "  two  spaces", "\n\n\n", "\tTab\r\nCRLF", "I'LL we'll don't",
    "3.14159 1,000,000 \u00b2\u2167\u0663",
    "na\u00efve caf\u00e9 e\u0301",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f999!",
    "<|im_start|>user<|im_end|>", "<bos><eos>", "a" * 70, " " * 40 + "x",
    "\u3000\u00a0\u0085 odd spaces",
    "https://example.org/?q=a%20b&c=d#e", "x = {'k': [1, 2], \"v\": None};",
    "\ufeffBOM and \u200b zero width",
]
N = 40


def truth(reference, ids, n, best):
    """For each of the last n ids: the reference's gap, and its view of llama.cpp's three best."""
    rows, out = reference.run(ids)[len(ids) - n - 1:-1], []
    for row, top in zip(rows, best):
        first, second = np.partition(row, -2)[-1], np.partition(row, -2)[-2]
        out.append([round(float(x), 4) for x in [first - second, *(row[i] for i, _ in top[:3])]])
    return out


def make(name, version):
    path = ternrun.model(name)
    server, reference = peer.Server(path), Reference(path, np.float32)
    rows = []
    for p in PROMPTS:
        tokens, best, text = server.complete(p, N)
        rows.append({"prompt": p, "prompt_tokens": server.tokenize(p), "tokens": tokens,
                     "text": text, "top": [[[i, round(x, 4)] for i, x in row] for row in best],
                     "truth": truth(reference, server.tokenize(p) + tokens, len(tokens), best)})
    texts = [{"text": t, "tokens": server.tokenize(t)} for t in TEXTS]
    server.close()
    return {"model": os.path.basename(path), "made_with": version, "prompts": rows, "texts": texts}


def main():
    out = subprocess.run([os.path.join(peer.binaries(), "llama-server"), "--version"],
                         capture_output=True, text=True, check=True)
    version = "llama.cpp " + (out.stdout + out.stderr).split("version:")[1].split("\n")[0].strip()
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results")
    os.makedirs(folder, exist_ok=True)
    for name in sys.argv[1:] or ternrun.SMALL:
        result = make(name, version)
        with open(os.path.join(folder, name + ".json"), "w") as f:
            f.write("{\n")
            for key in ("model", "made_with"):
                f.write(f" {json.dumps(key)}: {json.dumps(result[key])},\n")
            for key, end in (("prompts", "],\n"), ("texts", "]\n")):
                rows = ",\n  ".join(json.dumps(r, separators=(",", ":")) for r in result[key])
                f.write(f" {json.dumps(key)}: [\n  {rows}\n {end}")
            f.write("}\n")


if __name__ == "__main__":
    main()
