"""How near embeddings are to those of float32 activations: Tern's, and llama-server's.

    embedding_cosines.py TERN LLAMA_SERVER MODEL

Both round activations to 8 bits in blocks; `tern serve --exact` does not. All are given the same
ids of tokens. Prints the least and the largest cosine of five texts, pooled each way.
"""
import http.client
import json
import math
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "serve"))
from server import Server

TEXTS = ["The sea is wide.", "what is the light by the sea?", "def f(x):\n    return x + 1\n",
         "A cat sat on the mat and looked at the rain, which had not stopped for three days.",
         "Ein Haus am Meer, und niemand kommt."]
PORT = 18231


def post(port, path, body):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=100)
    c.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    return json.loads(c.getresponse().read())


def embeddings(port, ids):
    data = post(port, "/v1/embeddings", {"input": ids, "model": "any"})["data"]
    return [d["embedding"] for d in sorted(data, key=lambda d: d["index"])]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def cosine(a, b):
    return dot(a, b) / math.sqrt(dot(a, a) * dot(b, b))


def wait_for(port):
    for _ in range(300):
        try:
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            c.request("GET", "/health")
            if c.getresponse().status == 200:
                return
        except OSError:
            pass
        time.sleep(0.2)


def main():
    tern, other, model = sys.argv[1:4]
    for pooling in ("mean", "last"):
        found = {}
        for name, more in (("exact", ["--exact"]), ("tern", [])):
            s = Server(tern, model, "-c", 512, "-np", 1, "--pooling", pooling, *more)
            ids = [s.good("/tokenize", {"content": t, "add_special": True})["tokens"]
                   for t in TEXTS]
            found[name] = embeddings(s.port, ids)
            s.stop()
        p = subprocess.Popen([other, "-m", model, "--port", str(PORT), "-c", "512", "-t", "1",
                              "--embeddings", "--pooling", pooling],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(PORT)
        found["llama-server"] = embeddings(PORT, ids)
        p.terminate()
        p.wait()
        for name in ("tern", "llama-server"):
            all_ = [cosine(a, b) for a, b in zip(found[name], found["exact"])]
            print(f"{pooling}: {name} to exact {min(all_):.5f} to {max(all_):.5f}")


main()
