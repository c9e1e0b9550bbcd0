#!/usr/bin/env python3
"""Stores what llama.cpp answers on the real models: make_results.py [--truth] [NAME...]

Writes results/NAME.json; --truth keeps llama.cpp's stored answers and makes the rest anew.

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


def add_truth(reference, prompts):
    """For each token: the reference's gap, and its view of llama.cpp's three best."""
    x, bounds = reference.hidden([p["prompt_tokens"] + p["tokens"] for p in prompts])
    for p, (_, end) in zip(prompts, bounds):
        rows = reference.log_probs(x[end - len(p["tokens"]) - 1:end - 1])
        p["truth"] = []
        for row, top in zip(rows, p["top"]):
            second, first = np.partition(row, -2)[-2:]
            values = [first - second, *(row[i] for i, _ in top[:3])]
            p["truth"].append([round(float(v), 4) for v in values])


def make(name, version):
    path = ternrun.model(name)
    server = peer.Server(path)
    rows = []
    for p in PROMPTS:
        tokens, best, text = server.complete(p, N)
        rows.append({"prompt": p, "prompt_tokens": server.tokenize(p), "tokens": tokens,
                     "text": text, "top": [[[i, round(x, 4)] for i, x in row] for row in best]})
    texts = [{"text": t, "tokens": server.tokenize(t)} for t in TEXTS]
    server.close()
    return {"model": os.path.basename(path), "made_with": version, "prompts": rows, "texts": texts}


FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results")


def peer_version():
    out = subprocess.run([os.path.join(peer.binaries(), "llama-server"), "--version"],
                         capture_output=True, text=True, check=True)
    return "llama.cpp " + (out.stdout + out.stderr).split("version:")[1].split("\n")[0].strip()


def write(name, result):
    """JSON with one prompt or text a line."""
    os.makedirs(FOLDER, exist_ok=True)
    with open(os.path.join(FOLDER, name + ".json"), "w") as f:
        f.write("{\n")
        for key in ("model", "made_with"):
            f.write(f" {json.dumps(key)}: {json.dumps(result[key])},\n")
        for key, end in (("prompts", "],\n"), ("texts", "]\n")):
            rows = ",\n  ".join(json.dumps(r, separators=(",", ":")) for r in result[key])
            f.write(f" {json.dumps(key)}: [\n  {rows}\n {end}")
        f.write("}\n")


def main():
    names = [a for a in sys.argv[1:] if a != "--truth"]
    for name in names or ternrun.SMALL:
        if "--truth" in sys.argv:
            with open(os.path.join(FOLDER, name + ".json")) as f:
                result = json.load(f)
        else:
            result = make(name, peer_version())
        add_truth(Reference(ternrun.model(name), np.float32), result["prompts"])
        write(name, result)


if __name__ == "__main__":
    main()
