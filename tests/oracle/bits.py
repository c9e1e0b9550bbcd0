#!/usr/bin/env python3
"""One arithmetic: ids and log-probabilities are byte-equal however a run is made.

    bits.py TERN [OTHER...] [--all] [--real] [--models NAME,...] [--ids N]

On small models: the CPU variants, threads, chunks of the prompt, alone or among seven other
sequences, with prefixes shared or not, in fresh or reused blocks; for each choice of cache
types. OTHER are further builds (another compiler or level, or "qemu-aarch64 -L ROOT tern"),
whose runs must equal TERN's. --all is the whole product for every model (hours); without it
each model runs a part, another one each, so that together they cover it. --real runs pairs on
the real models.
"""
import argparse
import itertools
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "models")]
import make_models  # noqa: E402
import ternrun  # noqa: E402

MODELS = ["llama-q4_0", "llama-q4_1", "llama-q5_0", "llama-q5_1", "llama-q8_0", "llama-f32",
          "llama-f16", "llama-mixed", "llama-iq4_xs", "llama-head20", "llama-vocab31",
          "llama-heads71of1", "qwen2", "qwen2-k", "qwen3", "gemma3", "gemma3-window300"]
KV = [[], ["--exact"], ["--kv-k", "q8_0", "--kv-v", "q8_0"], ["--kv-k", "f32", "--kv-v", "f32"],
      ["--kv-k", "q8_0"], ["--kv-v", "q8_0"], ["--kv-k", "q4_0", "--kv-v", "q4_0"],
      ["--kv-k", "q4_0", "--kv-v", "q8_0"], ["--kv-v", "q4_0"]]
CPUS, THREADS, CHUNKS = ["reference", "avx2"], [1, 2, 5], [1, 7, 64, 512]
COMPANY = ["alone", "among", "among, unshared", "after"]
LONG = {"llama-q4_0", "llama-q8_0", "qwen3", "gemma3-window300"}  # more than a chunk of 256 keys
N = 6  # tokens generated


def key(answer):
    """What must be equal, floats as they were printed."""
    return [answer["tokens"], answer["logprobs"], answer["prompt_logprobs"]]


def same(a, b):
    """Equal; where a prefix was found in the cache its rows may be missing."""
    if a[:2] != b[:2] or len(a[2]) != len(b[2]):
        return False
    return all(x == y or not x or not y for x, y in zip(a[2], b[2]))


def load(text):
    return json.loads(text, parse_float=str)


def alone(tern, path, ids, env, extra):
    out = tern.out("run", path, "--ids", ",".join(map(str, ids)), "-n", N, "--temp", 0,
                   "--ignore-eos", "--logprobs", 4, "--prompt-logprobs", 2, "-c", len(ids) + 32,
                   *extra, "--json", env=env)
    return key(load(out))


def lines(ids, company, n_vocab):
    """The prompts of a file, and which of them is ours: among strangers and kin."""
    others = [ternrun.ids(100 + i, 9 + len(ids) * i // 6, n_vocab) for i in range(5)]
    others += [ids[:len(ids) * 2 // 3] + others[0][:9], ids[:33] + others[1]]
    at = 4 if company.startswith("among") else 7
    rows = others[:at] + [ids] + others[at:]
    return [json.dumps({"ids": ",".join(map(str, r))}) for r in rows], at


def in_company(tern, path, ids, env, extra, company, n_vocab, prompt_logprobs=2):
    rows, at = lines(ids, company, n_vocab)
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
        f.write("\n".join(rows) + "\n")
        f.flush()
        if company == "among, unshared":
            extra = [*extra, "--no-kv-sharing"]
        out = tern.out("run", path, "--prompts", f.name, "--sequences",
                       1 if company == "after" else 8, "-n", N, "--temp", 0, "--ignore-eos",
                       "--logprobs", 4, "--prompt-logprobs", prompt_logprobs, "-c", len(ids) + 32,
                       *extra, "--jsonl", env=env)
    return load(out.decode().strip().split("\n")[at])


def quiet(tern, path, ids, n_vocab, threads, chunk, company, kv):
    """Without the prompt's own probabilities steps are as long as a chunk, and rows are lanes."""
    extra = ["-t", threads, "--chunk", chunk, *kv]
    if company == "alone":
        out = tern.out("run", path, "--ids", ",".join(map(str, ids)), "-n", N, "--temp", 0,
                       "--ignore-eos", "--logprobs", 4, "-c", len(ids) + 32, *extra, "--json")
        answer = load(out)
    else:
        answer = in_company(tern, path, ids, {}, extra, company, n_vocab, 0)
    return [answer["tokens"], answer["logprobs"]]


def scored(tern, path, threads):
    """Each row of a step has logits, of several lanes."""
    text = "".join(chr(97 + i * i * 7 % 23) + " " * (i % 3 == 0) for i in range(900))
    with tempfile.NamedTemporaryFile() as f:
        tern.out("perplexity", path, "-p", text, "-c", 256, "-t", threads, "--chunk", 128,
                 "--save-logits", f.name)
        return f.read()


def run(tern, path, ids, n_vocab, cpu, threads, chunk, company, kv):
    env, extra = {"TERN_CPU": cpu} if cpu else {}, ["-t", threads, "--chunk", chunk, *kv]
    if company == "alone":
        return alone(tern, path, ids, env, extra)
    return key(in_company(tern, path, ids, env, extra, company, n_vocab))


def product(step, first):
    """The ways to run, or every step-th of them; steps are prime to the number of each choice."""
    return list(itertools.product(CPUS, THREADS, CHUNKS, COMPANY))[first % step::step]


def check_model(terns, path, ids, n_vocab, whole, first):
    n, wrong = 0, []
    for i, kv in enumerate(KV):
        base = run(terns[0], path, ids, n_vocab, "reference", 1, 64, "alone", kv)
        for way in product(1 if whole else 19 if kv or len(terns) > 1 else 7, first + 5 * i):
            n += 1
            if not same(run(terns[0], path, ids, n_vocab, *way, kv), base):
                wrong.append(f"{' '.join(map(str, way))} {' '.join(kv)}")
        for threads in () if kv else (2, 3):
            n += 1
            if scored(terns[0], path, threads) != scored(terns[0], path, 1):
                wrong.append(f"{terns[0].command}: all rows scored by {threads}")
        for tern in terns[:1] if kv else terns:
            for way in ((2, 64, "alone"), (5, 512, "alone"), (3, 512, "among"),
                        (1, 512, "alone"), (2, 512, "among")):  # tiles side by side
                n += 1
                if quiet(tern, path, ids, n_vocab, *way, kv) != base[:2]:
                    wrong.append(f"{' '.join(tern.command)}: {way} quiet {kv}")
        for tern in terns[1:]:
            for way in ((None, 2, 64, "alone"), ("reference", 1, 512, "among")):
                n += 1
                if not same(run(tern, path, ids, n_vocab, *way, kv), base):
                    wrong.append(f"{' '.join(tern.command)}: {way} {' '.join(kv)}")
    return n, wrong


def small(terns, names, whole, n_ids):
    n, wrong = 0, []
    with tempfile.TemporaryDirectory() as folder:
        for first, name in enumerate(names):
            path = os.path.join(folder, make_models.write(folder, name)[0])
            n_vocab = make_models.n_vocab(name)
            try:
                length = 640 if "window" in name else 300 if name in LONG else 90
                ids = ternrun.ids(7, n_ids or length, n_vocab)
                count, bad = check_model(terns, path, ids, n_vocab, whole, first)
            except ternrun.Failed as x:
                count, bad = 1, [str(x)]
            n += count
            wrong += [f"{name}: {b}" for b in bad]
    return n, wrong


def real(terns):
    n, wrong, skipped = 0, [], []
    for name in ternrun.SMALL:
        path = ternrun.model(name)
        if path is None:
            skipped.append(f"{name}: no folder holds {ternrun.REAL[name]}")
            continue
        with open(os.path.join(HERE, "results", name + ".json")) as f:
            p = json.load(f)["prompts"][10]
        ids = (p["prompt_tokens"] + p["tokens"])[:60]
        base = run(terns[0], path, ids, 1000, "reference", 2, 64, "alone", [])
        ways = [(None, 1, 128, "alone"), (None, 2, 7, "alone"), ("avx2", 3, 1, "alone"),
                (None, 2, 64, "among")]
        for tern in terns:
            for way in ways:
                n += 1
                if not same(run(tern, path, ids, 1000, *way, []), base):
                    wrong.append(f"{name}: {' '.join(tern.command)} {way}")
    return n, wrong, skipped


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    a.add_argument("terns", nargs="+", metavar="TERN")
    a.add_argument("--all", action="store_true")
    a.add_argument("--real", action="store_true")
    a.add_argument("--models", default=",".join(MODELS))
    a.add_argument("--ids", type=int, default=0, help="of the prompt: 90 to 640 by default")
    o = a.parse_intermixed_args()
    terns = [ternrun.Tern(t) for t in o.terns]
    if o.real:
        n, wrong, skipped = real(terns)
        for s in skipped:
            print("SKIPPED: " + s)
        if n == 0:
            sys.exit(ternrun.SKIP)
    else:
        n, wrong = small(terns, o.models.split(","), o.all, o.ids)
    for w in wrong[:40]:
        print("FAILED " + w)
    print(f"{n} runs, {len(wrong)} with other bits")
    sys.exit(len(wrong) > 0)


if __name__ == "__main__":
    main()
