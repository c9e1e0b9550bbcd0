"""Asks a llama-server on this machine: the peer whose answers are stored and compared with."""
import atexit
import json
import os
import socket
import subprocess
import time
import urllib.request


def binaries():
    """The folder of llama.cpp's programs: TERN_LLAMA, or where the bench script builds them."""
    peers = os.environ.get("TERN_PEERS", "/tmp/tern-peers")
    return os.environ.get("TERN_LLAMA", os.path.join(peers, "llama.cpp/b/bin"))


class Server:
    def __init__(self, model, threads=2, args=()):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        command = [os.path.join(binaries(), "llama-server"), "-m", model, "-t",
                   str(threads), "--port", str(self.port), "-c", "2048", "-np", "1",
                   "--no-webui", *args]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        atexit.register(self.close)
        for _ in range(600):
            if self.process.poll() is not None:
                raise RuntimeError(f"llama-server ended with {self.process.returncode}: {command}")
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5)
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("llama-server does not answer")

    def post(self, path, body):
        r = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", json.dumps(body).encode(),
                                   {"Content-Type": "application/json"})
        with urllib.request.urlopen(r, timeout=600) as answer:
            return json.loads(answer.read())

    def tokenize(self, text):
        return self.post("/tokenize", {"content": text, "add_special": True})["tokens"]

    def complete(self, prompt, n, top=10):
        """Greedy from a prompt (text or ids): the ids, the best log-probabilities, the text.

        The server reports no log-probabilities for tokens that end inside a character: the list
        of the best ends before the first of them.
        """
        a = self.post("/completion", {"prompt": prompt, "n_predict": n, "temperature": 0,
                                      "n_probs": top, "return_tokens": True,
                                      "cache_prompt": False})
        best = []
        for i, c in zip(a["tokens"], a.get("completion_probabilities", [])):
            if i != c["id"]:
                break
            best.append([(t["id"], t["logprob"]) for t in c["top_logprobs"]])
        return a["tokens"], best, a["content"]

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
