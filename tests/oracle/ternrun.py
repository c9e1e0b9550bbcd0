"""What the oracle checks share: where the models are, how `tern` is asked, how a check ends.

    TERN_BIN     the command (checks are given it as their first argument as well)
    TERN_MODELS  a folder with the real models; then where tools/get-models.py puts them, and the
                 peers' folder, are looked at
"""
import json
import os
import subprocess
import sys

REAL = {
    "smollm2": "SmolLM2-135M-Instruct.Q4_1.gguf",
    "gemma3": "gemma-3-270m-q4_k_m.gguf",
    "qwen0.5": "qwen2.5-coder-0.5b-instruct-awq-q4_k_m.gguf",
    "qwen1.5": "qwen2.5-coder-1.5b.gguf",
}
SMALL = ["smollm2", "gemma3", "qwen0.5"]
SKIP = 77


def model(name):
    """The path of a real model, or None where no folder holds it."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    fetched = os.path.join(cache, "tern", "models")
    peers = os.path.join(os.environ.get("TERN_PEERS", "/tmp/tern-peers"), "models")
    for folder in (os.environ.get("TERN_MODELS", ""), fetched, peers):
        path = os.path.join(folder, REAL[name])
        if folder and os.path.exists(path):
            return path
    return None


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(SKIP)


class Failed(Exception):
    """A run of tern that should have worked did not."""


class Tern:
    """A `tern` command, perhaps under an emulator: `qemu-aarch64 -L ROOT tern`."""

    def __init__(self, command, env=None):
        self.command = command.split() if isinstance(command, str) else list(command)
        self.env = {**os.environ, **(env or {})}

    def raw(self, *args, env=None, stdin=None, timeout=600):
        e = {**self.env, **(env or {})}
        return subprocess.run([*self.command, *map(str, args)], capture_output=True, env=e,
                              input=stdin, timeout=timeout, check=False)

    def out(self, *args, **kw):
        r = self.raw(*args, **kw)
        if r.returncode:
            words = " ".join(map(str, args))
            last = r.stderr.decode(errors="replace").strip().splitlines()[-1:] or [""]
            raise Failed(f"tern {words[:200]}: exit {r.returncode}: {last[0][:200]}")
        return r.stdout

    def json(self, *args, **kw):
        text = self.out(*args, "--json", **kw)
        try:
            return json.loads(text)
        except ValueError as x:
            raise Failed(f"tern {args[0]} --json: {x}: {text[:100]!r}") from None


def ids(seed, n, n_vocab):
    """n ids below n_vocab that look random and repeat a little, the same everywhere."""
    out, s = [], (seed * 2654435761 + 12345) & 0xffffffff
    for i in range(n):
        s = (s * 1103515245 + 12345) & 0x7fffffff
        out.append(out[i - 5] if i > 8 and s % 7 == 0 else (s >> 8) % n_vocab)
    return out


def topics(n):
    """Text that every Python carries: its own manual."""
    import pydoc_data.topics as t
    return "\n\n".join(t.topics[k] for k in sorted(t.topics))[:n]


def tern_from_args():
    if len(sys.argv) < 2 and "TERN_BIN" not in os.environ:
        sys.exit(f"usage: {sys.argv[0]} TERN [...]")
    return Tern(sys.argv[1] if len(sys.argv) > 1 else os.environ["TERN_BIN"])
