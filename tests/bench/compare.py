#!/usr/bin/env python3
"""Decode and prefill beside llama.cpp on one machine: compare.py TERN [MODEL...]

    --rounds 5 --threads 1,2 --decode 64 --prefill 256 --batch 8 --json

With --batch, so many sequences are decoded together on the most threads, beside llama.cpp's. A
figure that has a bar is printed with it, and marked where it is below.

Rounds are interleaved (the peer, then Tern, then the peer ...), since other work on the machine
moves both; medians are compared. The peer is llama.cpp built natively: TERN_LLAMA names the
folder of its programs, else it is built from the source package that llama-cpp-python carries,
under $XDG_CACHE_HOME/tern/llama.cpp (about 12 minutes on two cores, once).
"""
import argparse
import glob
import json
import os
import statistics
import subprocess
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
import ternrun  # noqa: E402

# model -> decode against the peer on 1 and 2 threads; share of the read bandwidth likewise; share
# of the int8 peak in prefill with AVX2; a batch of 8 on 2 threads against the peer's.
BARS = {
    "smollm2": {"ratio": (2.4, 2.6), "bandwidth": (0.80, 0.65), "peak": 0.60, "batch": 5},
    "gemma3": {"ratio": (1.5, 1.9), "bandwidth": (0.85, 0.75), "peak": 0.60},
    "qwen0.5": {"ratio": (1.7, 1.9), "bandwidth": (0.85, 0.75), "peak": 0.70, "batch": 4},
    "qwen1.5": {"ratio": (1.0, 1.35), "bandwidth": (0.90, 0.85), "peak": 0.70},
}

PACKAGE = "llama-cpp-python==0.3.36"
CMAKE = ["-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON", "-DLLAMA_CURL=OFF",
         "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_COMMIT=pypi", "-DLLAMA_BUILD_NUMBER=0"]


def say(text):
    print(text, file=sys.stderr, flush=True)


def build(folder):
    """Downloads and builds llama.cpp there; returns the folder of its programs."""
    os.makedirs(folder, exist_ok=True)
    say(f"compare.py: building llama.cpp under {folder}")
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "scikit-build-core"], check=True)
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps",
                    "--no-build-isolation", "--no-binary", ":all:", "-d", folder, PACKAGE],
                   check=True)
    with tarfile.open(glob.glob(os.path.join(folder, "llama_cpp_python-*.tar.gz"))[0]) as t:
        t.extractall(folder)
    source = glob.glob(os.path.join(folder, "llama_cpp_python-*", "vendor", "llama.cpp"))[0]
    target = os.path.join(folder, "b")
    subprocess.run(["cmake", "-S", source, "-B", target, *CMAKE], check=True,
                   stdout=subprocess.DEVNULL)
    subprocess.run(["make", "-C", target, f"-j{os.cpu_count()}", "llama-bench", "llama-server"],
                   check=True, stdout=subprocess.DEVNULL)
    return os.path.join(target, "bin")


def peer_folder():
    peers = os.environ.get("TERN_PEERS", "/tmp/tern-peers")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    ours = os.path.join(cache, "tern", "llama.cpp")
    for folder in (os.environ.get("TERN_LLAMA", ""), os.path.join(peers, "llama.cpp", "b", "bin"),
                   os.path.join(ours, "b", "bin")):
        if os.path.exists(os.path.join(folder, "llama-bench")):
            return folder
    return build(ours)


def ask_peer(folder, model, threads, prefill, decode):
    out = subprocess.run([os.path.join(folder, "llama-bench"), "-m", model, "-t", str(threads),
                          "-p", str(prefill), "-n", str(decode), "-r", "1", "-fa", "1", "-o",
                          "json"], capture_output=True, text=True, check=True).stdout
    rows = json.loads(out)
    return {"prefill": next(r["avg_ts"] for r in rows if r["n_prompt"]),
            "decode": next(r["avg_ts"] for r in rows if r["n_gen"])}


def ask_tern(tern, model, threads, prefill, decode):
    r = tern.json("bench", model, "-t", threads, "--prefill", prefill, "--decode", decode,
                  "--batch", 1, "--repeat", 1)["results"][0]
    return {"prefill": r["prefill_tps"], "decode": r["decode_tps"],
            "prefill_of_limit": r["prefill_of_limit"], "decode_of_limit": r["decode_of_limit"]}


def measure(tern, folder, name, threads, o):
    path, theirs, ours = ternrun.model(name), [], []
    for i in range(o.rounds):
        say(f"compare.py: {name}, {threads} threads, round {i + 1} of {o.rounds}")
        theirs.append(ask_peer(folder, path, threads, o.prefill, o.decode))
        ours.append(ask_tern(tern, path, threads, o.prefill, o.decode))
    row = {"model": name, "threads": threads}
    for what in ("decode", "prefill"):
        a, b = (statistics.median(x[what] for x in rows) for rows in (theirs, ours))
        row[what] = {"llama.cpp": a, "tern": b, "ratio": b / a,
                     "of_limit": statistics.median(x[what + "_of_limit"] for x in ours)}
    return row


def peer_batch(folder, model, threads, batch):
    out = subprocess.run([os.path.join(folder, "llama-batched-bench"), "-m", model, "-t",
                          str(threads), "-c", "4096", "-npp", "64", "-ntg", "48", "-npl",
                          str(batch), "-fa", "on"], capture_output=True, text=True,
                         check=True).stdout
    return float([r for r in out.splitlines() if r.startswith("|")][-1].split("|")[8])


def measure_batch(tern, folder, name, threads, o):
    path, theirs, ours = ternrun.model(name), [], []
    for i in range(o.rounds):
        say(f"compare.py: {name}, a batch of {o.batch}, round {i + 1} of {o.rounds}")
        theirs.append(peer_batch(folder, path, threads, o.batch))
        r = tern.json("bench", path, "-t", threads, "--prefill", 64, "--decode", 48, "--batch",
                      o.batch, "--repeat", 1)["results"][0]
        ours.append(r["decode_tps"])
    a, b = statistics.median(theirs), statistics.median(ours)
    return {"model": name, "threads": threads, "batch": o.batch, "llama.cpp": a, "tern": b,
            "ratio": b / a}


def bar(text, value, least):
    """The figure; with its bar, and marked where it is below."""
    if least is None:
        return text
    return f"{text} ({'bar' if value >= least else 'BELOW'} {least:g})"


def bars_of(row):
    """Bars of a row: decode's ratio and share, prefill's share; None where there is none."""
    b = next((v for k, v in BARS.items() if k in row["model"].lower()), None)
    if b is None or row["threads"] not in (1, 2):
        return None, None, None
    return b["ratio"][row["threads"] - 1], b["bandwidth"][row["threads"] - 1], b["peak"]


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    a.add_argument("tern", metavar="TERN")
    a.add_argument("models", nargs="*", metavar="MODEL", default=ternrun.SMALL)
    a.add_argument("--rounds", type=int, default=5)
    a.add_argument("--threads", default="1,2")
    a.add_argument("--decode", type=int, default=64)
    a.add_argument("--prefill", type=int, default=256)
    a.add_argument("--batch", type=int, default=0)
    a.add_argument("--json", action="store_true")
    o = a.parse_args()
    names = [n for n in o.models if ternrun.model(n)]
    if not names:
        ternrun.skip(f"no folder holds any of {' '.join(o.models)}; see tools/get-models.py")
    tern, folder = ternrun.Tern(o.tern), peer_folder()
    rows = [measure(tern, folder, n, int(t), o) for n in names for t in o.threads.split(",")]
    most = max(int(t) for t in o.threads.split(","))
    batches = [measure_batch(tern, folder, n, most, o) for n in names if o.batch]
    if o.json:
        print(json.dumps(rows + batches, indent=1))
        return
    print("| model, threads | decode tokens/s: llama.cpp, tern | ratio | of limit "
          "| prefill tokens/s: llama.cpp, tern | ratio | of limit |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for r in rows:
        cells = [f"{r['model']}, {r['threads']}"]
        ratio, bandwidth, peak = bars_of(r)
        for what, of_ratio, of_limit in (("decode", ratio, bandwidth), ("prefill", None, peak)):
            x = r[what]
            cells += [f"{x['llama.cpp']:.0f}, {x['tern']:.0f}",
                      bar(f"{x['ratio']:.2f}", x["ratio"], of_ratio),
                      bar(f"{x['of_limit'] * 100:.0f}%", x["of_limit"], of_limit)]
        print("| " + " | ".join(cells) + " |")
    for r in batches:
        b = next((v for k, v in BARS.items() if k in r["model"].lower()), {})
        least = b.get("batch") if (r["batch"], r["threads"]) == (8, 2) else None
        print(f"{r['model']}, {r['batch']} sequences, {r['threads']} threads: "
              f"{r['llama.cpp']:.0f}, {r['tern']:.0f} tokens/s, "
              + bar(f"{r['ratio']:.2f}", r["ratio"], least))


if __name__ == "__main__":
    main()
