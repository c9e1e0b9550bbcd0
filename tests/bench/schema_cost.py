#!/usr/bin/env python3
"""What a schema costs a model's decoding: schema_cost.py TERN MODEL [N ...]

    --rounds 5 --seeds 4 --tokens 48 --threads 1 --temp 0.8

For each of the ten schemas of tests/oracle/growing.py, or those numbered: answers under it, then
as many tokens without it, in rounds that follow one another. Prints the tokens a second of both
(medians) and how much of its speed the model loses. Time is from the first token to the last.
Exits 1 where it is 10% or more.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
from growing import GROWING  # noqa: E402

MOST = 0.10


def run(args, folder, lines, more):
    with open(f"{folder}/prompts.jsonl", "w") as f:
        f.writelines(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([args.tern, "run", args.model, "--prompts", f"{folder}/prompts.jsonl",
                           "-t", args.threads, "--temp", args.temp, "-c", "512", *more],
                          capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for a in answers:
        assert a["stop"] in ("eos", "length"), a
    return answers


def speed(answers):
    tokens = sum(len(a["tokens"]) - 1 for a in answers)
    return tokens / sum(a["timing"]["decode_s"] for a in answers)


def measure(args, folder, number):
    with open(f"{folder}/s.json", "w") as f:
        json.dump(GROWING[number], f)
    held, free = [], []
    for _ in range(args.rounds):
        lines = [{"prompt": "A document in JSON: ", "seed": seed, "predict": args.tokens}
                 for seed in range(args.seeds)]
        answers = run(args, folder, lines, ["--schema", f"{folder}/s.json"])
        held.append(speed(answers))
        for line, a in zip(lines, answers):
            line["predict"] = len(a["tokens"])
        free.append(speed(run(args, folder, lines, ["--ignore-eos"])))
    loss = 1 - statistics.median(h / f for h, f in zip(held, free))
    print(f"{number:2} {len(GROWING[number]['properties']):3} properties: "
          f"{statistics.median(held):7.1f} of {statistics.median(free):7.1f} tokens/s, "
          f"loss {100 * loss:5.1f}%{'' if loss < MOST else ' OVER'}", flush=True)
    return loss


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("tern")
    p.add_argument("model")
    p.add_argument("schemas", nargs="*", type=int, default=None)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seeds", type=int, default=4)
    p.add_argument("--tokens", type=int, default=48)
    p.add_argument("--threads", default="1")
    p.add_argument("--temp", default="0.8")
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        losses = [measure(args, folder, n) for n in args.schemas or range(len(GROWING))]
    sys.exit(max(losses) >= MOST)


main()
