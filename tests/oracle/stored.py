#!/usr/bin/env python3
"""tern against the stored answers of llama.cpp: stored.py TERN [NAME...]

Ids of prompts and texts are equal. Greedy ids are equal up to the first place where the two
best candidates, llama.cpp's or the float reference's, are within 0.25 nats: both compute with
int8 activations, and each is some tenths of a nat off the reference where it is unlucky. So the
log-probabilities of llama.cpp's three best are held against the reference's, and may be no
further off on average than llama.cpp's are.
"""
import json
import math
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import ternrun  # noqa: E402

NEAR = 0.25


def greedy(tern, path, p, name, errors):
    """(tokens equal, tokens compared, what is wrong or None); errors: (ours, llama.cpp's)"""
    n = len(p["top"])
    got = tern.json("run", path, "-p", p["prompt"], "-n", n, "--temp", 0, "--logprobs", 10,
                    "--ignore-eos", "-c", 1024)
    where = f"{name} {p['prompt'][:20]!r}"
    if got["prompt_tokens"] != p["prompt_tokens"]:
        return 0, 0, f"{where}: prompt ids {got['prompt_tokens']}, stored {p['prompt_tokens']}"
    truths = p.get("truth", [[]] * n)  # of a large model the reference takes long
    for i, (want, top, truth) in enumerate(zip(p["tokens"], p["top"], truths)):
        ours = {x["id"]: x["logprob"] for x in got["logprobs"][i]}
        for (token, lp), right in zip(top, truth[1:]):
            if right > -3 and token in ours:
                errors.append((ours[token] - right, lp - right))
        if got["tokens"][i] != want:
            gap = min(top[0][1] - top[1][1], truth[0] if truth else math.inf)
            if gap > NEAR:
                return i, i + 1, (f"{where}: token {i} is {got['tokens'][i]}, others are sure of "
                                  f"{want} by {gap:.2f} nats")
            return i, i + 1, None
    return n, n, None


def rms(values):
    return math.sqrt(sum(v * v for v in values) / max(1, len(values)))


def check(tern, name):
    with open(os.path.join(HERE, "results", name + ".json")) as f:
        stored = json.load(f)
    path, wrong, errors = ternrun.model(name), [], []
    for t in stored["texts"]:
        got = [x["id"] for x in tern.json("tokenize", path, "--special", "-p", t["text"])["tokens"]]
        if got != t["tokens"]:
            wrong.append(f"{name}: ids of {t['text'][:30]!r}: {got[:12]}, "
                         f"stored {t['tokens'][:12]}")
    rows = [greedy(tern, path, p, name, errors) for p in stored["prompts"]]
    wrong += [r[2] for r in rows if r[2]]
    ours, theirs = (rms([e[i] for e in errors]) for i in (0, 1))
    print(f"{name}: {len(stored['texts'])} texts; {sum(r[0] for r in rows)} of "
          f"{sum(r[1] for r in rows)} greedy tokens equal up to near ties; off the reference by "
          f"{ours:.3f} nats (llama.cpp {theirs:.3f})")
    if ours > 1.15 * theirs + 0.005:
        wrong.append(f"{name}: log-probabilities are further off than llama.cpp's")
    return wrong


def main():
    tern = ternrun.tern_from_args()
    wrong, skipped = [], []
    names = sys.argv[2:] or ternrun.SMALL
    for name in names:
        if ternrun.model(name) is None:
            skipped.append(f"{name}: no folder holds {ternrun.REAL[name]}")
            continue
        try:
            wrong += check(tern, name)
        except ternrun.Failed as x:
            wrong.append(f"{name}: {x}")
    for s in skipped:
        print("SKIPPED: " + s)
    for w in wrong:
        print("FAILED " + w)
    if len(skipped) == len(names):
        sys.exit(ternrun.SKIP)
    sys.exit(len(wrong) > 0)


if __name__ == "__main__":
    main()
