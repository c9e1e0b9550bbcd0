#!/usr/bin/env python3
"""tokenizers.py TOKENIZE_LINES SOURCE_ROOT: our ids against llama.cpp's.

First the vocabularies with test files of llama.cpp (TERN_SHARED, or ../shared beside the
source), every line of them; then, on real models (TERN_MODELS), the texts of awkward.py with
the ids stored in results/. Answers 77 if nothing was there to compare.
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import awkward  # noqa: E402
import ternrun  # noqa: E402

SEPARATOR = b"\n__ggml_vocab_test__\n"
# Vocabularies that lie beside their lines, or in a real model, or nowhere.
VECTORS = {"bert-bge": None, "deepseek-coder": None, "gpt-2": None, "llama-spm": None,
           "phi-3": None, "qwen2": "qwen0.5", "deepseek-r1-qwen": "qwen0.5", "llama-bpe": ""}


def ours(model, blob, *flags):
    done = subprocess.run([sys.argv[1], model, *flags], input=blob, capture_output=True,
                          check=False)
    if done.returncode:
        print(done.stderr.decode(errors="replace"))
        return None
    lines = done.stdout.decode().split("\n")[:-1]
    return [([int(x) for x in line.replace("!", "").split()], "!" in line) for line in lines]


def compare(name, texts, right, got, byte_level):
    if got is None or len(got) != len(right):
        print(f"{name}: {len(right)} texts, no answer or another number of lines")
        return 1
    wrong = 0
    for text, ids, (mine, lost) in zip(texts, right, got):
        bad = ids != mine or (byte_level and lost)
        wrong += bad
        if bad and wrong <= 5:
            print(f"{name}: {text!r}: {mine}, expected {ids}{', not decoded' if lost else ''}")
    print(f"{name}: {len(right)} texts, {wrong} differ")
    return wrong


def vectors(folder):
    failed = done = 0
    for name, model in VECTORS.items():
        inp = os.path.join(folder, name + ".inp")
        path = os.path.join(folder, name + ".gguf")
        if model is not None:
            path = ternrun.model(model) if model else None
        if not path or not os.path.exists(inp) or not os.path.exists(path):
            print(f"{name}: skipped, no vocabulary or no lines here")
            continue
        with open(inp, "rb") as f:
            blob = f.read()
        with open(inp[:-4] + ".out", encoding="utf-8") as f:
            right = [[int(x) for x in line.split()] for line in f.read().rstrip("\n").split("\n")]
        texts = blob.split(SEPARATOR)
        if len(right) == len(texts) - 1 and not texts[-1]:
            right.append([])
        failed += compare(name, texts, right, ours(path, blob), "bert" not in name) > 0
        done += 1
    return failed, done


def stored():
    failed = done = 0
    here = os.path.dirname(os.path.abspath(__file__))
    texts = awkward.texts()
    blob = SEPARATOR.join(t.encode() for t in texts)
    for name in ternrun.SMALL:
        path = ternrun.model(name)
        if not path:
            print(f"awkward, {name}: skipped, the model is not here")
            continue
        with open(os.path.join(here, "results", f"awkward-{name}.json"), encoding="utf-8") as f:
            right = json.load(f)
        for key in ("plain", "special"):
            failed += compare(f"awkward, {name}, {key}", texts, right[key],
                              ours(path, blob, key), name != "gemma3") > 0
        done += 1
    return failed, done


def main():
    shared = os.environ.get("TERN_SHARED", os.path.join(sys.argv[2], "..", "shared"))
    folder = os.path.join(shared, "vectors", "tokenizers")
    failed, done = vectors(folder)
    more_failed, more_done = stored()
    if done + more_done == 0:
        ternrun.skip(f"neither vectors in {folder} nor real models")
    return failed + more_failed > 0


sys.exit(main())
