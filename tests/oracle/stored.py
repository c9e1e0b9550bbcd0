#!/usr/bin/env python3
"""tern against the stored answers of llama.cpp: stored.py TERN [NAME...]

Ids of prompts and texts are equal; greedy ids are equal up to the first place where
llama.cpp's two best are within 0.25 nats; the likeliest log-probabilities are within 0.5.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import ternrun  # noqa: E402

NEAR, FAR = 0.25, 0.5


def greedy(tern, path, p, name):
    """(tokens equal, tokens compared, worst difference, what is wrong or None)"""
    n = len(p["top"])
    got = tern.json("run", path, "-p", p["prompt"], "-n", n, "--temp", 0, "--logprobs", 10,
                    "--ignore-eos", "-c", 1024)
    where = f"{name} {p['prompt'][:20]!r}"
    if got["prompt_tokens"] != p["prompt_tokens"]:
        return 0, 0, 0.0, f"{where}: prompt ids {got['prompt_tokens']}, stored {p['prompt_tokens']}"
    worst = 0.0
    for i, (want, top) in enumerate(zip(p["tokens"], p["top"])):
        ours = {x["id"]: x["logprob"] for x in got["logprobs"][i]}
        for token, lp in top[:3]:
            if lp > -3 and token in ours:
                worst = max(worst, abs(ours[token] - lp))
        if got["tokens"][i] != want:
            gap = top[0][1] - top[1][1]
            if gap > NEAR:
                return i, i + 1, worst, (f"{where}: token {i} is {got['tokens'][i]}, llama.cpp is "
                                         f"sure of {want} by {gap:.2f} nats")
            return i, i + 1, worst, None
    wrong = f"{where}: log-probabilities differ by {worst:.3f}" if worst > FAR else None
    return n, n, worst, wrong


def check(tern, name):
    with open(os.path.join(HERE, "results", name + ".json")) as f:
        stored = json.load(f)
    path, wrong = ternrun.model(name), []
    for t in stored["texts"]:
        got = [x["id"] for x in tern.json("tokenize", path, "-p", t["text"])["tokens"]]
        if got != t["tokens"]:
            wrong.append(f"{name}: ids of {t['text'][:30]!r}: {got[:12]}, "
                         f"stored {t['tokens'][:12]}")
    rows = [greedy(tern, path, p, name) for p in stored["prompts"]]
    wrong += [r[3] for r in rows if r[3]]
    print(f"{name}: {len(stored['texts'])} texts; {sum(r[0] for r in rows)} of "
          f"{sum(r[1] for r in rows)} greedy tokens equal up to near ties, worst difference "
          f"{max(r[2] for r in rows):.3f}")
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
