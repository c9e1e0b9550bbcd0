"""Clients in a closed loop of streamed completions against a tern serve, and how it fares.

    serve_load.py TERN MODEL [CLIENTS [REQUESTS [TOKENS [THREADS]]]]

REQUESTS are of each client, with prompts of 16 to 400 words that have nothing in common. One JSON
line: tokens/s, seconds to the first token and between two, and what each thread did: `http_share`
is the HTTP thread's part of all processor time of the server, `busy` that of the engine's threads
in the time there was (under 0.9: something else ran on the machine, and the figures are its).
"""
import http.client
import json
import os
import random
import re
import subprocess
import sys
import threading
import time

tern, model = sys.argv[1:3]
given = [int(a) for a in sys.argv[3:]]
clients, requests, tokens, n_threads = given + [8, 4, 48, 2][len(given):]
WORDS = ("a lamp that turns all night above the rocks keeps many ships from harm and nobody who "
         "sails by knows the hands that wind its clock or carry oil up those steps").split()
rows, refused, lock = [], [], threading.Lock()


def client(port, k):
    rng = random.Random(k)
    for i in range(requests):
        prompt = f"{k}.{i} " + " ".join(rng.choices(WORDS, k=rng.choice([16, 64, 200, 400])))
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        begun, times = time.monotonic(), []
        c.request("POST", "/v1/completions", json.dumps(
            {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True,
             "stream": True, "cache_prompt": False}), {"Content-Type": "application/json"})
        answer = c.getresponse()
        if answer.status != 200:
            refused.append(answer.read().decode())
            return
        for line in answer:
            if line.startswith(b"data: {"):
                times.append(time.monotonic() - begun)
        c.close()
        with lock:
            rows.append(times)


def seconds_of(pid):
    """Of each thread, in the order they were made: the engine's first, the HTTP thread second,
    the kitchen last."""
    found = []
    for task in sorted(map(int, os.listdir(f"/proc/{pid}/task"))):
        fields = open(f"/proc/{pid}/task/{task}/stat").read().rpartition(")")[2].split()
        found.append((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))
    return found


def at(values, part):
    return round(sorted(values)[min(len(values) - 1, int(part * len(values)))], 3)


server = subprocess.Popen([tern, "serve", "-m", model, "-t", str(n_threads), "-np", str(clients),
                           "-c", "1024", "--port", "0"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True)
for line in server.stderr:
    found = re.search(r"at http://[^ ]*:(\d+),", line)
    if found:
        break
else:
    sys.exit("the server did not start")
before, begun = seconds_of(server.pid), time.monotonic()
threads = [threading.Thread(target=client, args=(int(found[1]), k)) for k in range(clients)]
[t.start() for t in threads]
[t.join() for t in threads]
wall = time.monotonic() - begun
spent = [b - a for a, b in zip(before, seconds_of(server.pid))]
server.terminate()
server.wait(30)
if refused:
    sys.exit(f"a request was refused: {refused[0]}")
gaps = [b - a for times in rows for a, b in zip(times, times[1:])]
first = [times[0] for times in rows]
print(json.dumps({
    "requests": len(rows), "tokens_per_s": round(clients * requests * tokens / wall, 1),
    "first_p50": at(first, 0.5), "first_p95": at(first, 0.95), "gap_p50": at(gaps, 0.5),
    "gap_p99": at(gaps, 0.99), "gap_max": at(gaps, 1),
    "http_share": round(spent[1] / sum(spent), 4),
    "kitchen_share": round(spent[-1] / sum(spent), 4),
    "busy": round((spent[0] + sum(spent[2:-1])) / wall / n_threads, 3)}))
