#!/usr/bin/env python3
"""templates.py RENDER_LINES: chat templates beside Python's jinja2, byte for byte.

Every template of the source package llama-cpp-python (looked for in TERN_PEERS and in the cache,
fetched with pip otherwise), every construct of the snippets below, over conversations of all
kinds; what Python refuses has to be refused, and nothing else. Answers 77 where jinja2 or the
templates are not there.
"""
import datetime
import glob
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ternrun  # noqa: E402
import template_cases  # noqa: E402

try:
    import jinja2
    from jinja2 import nodes
    from jinja2.ext import Extension
    from jinja2.sandbox import ImmutableSandboxedEnvironment
except ImportError:
    ternrun.skip("the Python package jinja2 is not there")

PACKAGE = "llama-cpp-python==0.3.36"
OWN = {"bos_token": "<|bos|>", "eos_token": "<|im_end|>"}


class Generation(Extension):
    """Hugging Face's tag, which renders what it holds."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_body")
        return nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


ENV = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                    extensions=["jinja2.ext.loopcontrols", Generation])
ENV.filters["tojson"] = tojson
ENV.globals["raise_exception"] = raise_exception
ENV.globals["strftime_now"] = datetime.datetime(2024, 3, 5, 6, 7, 8).strftime


def fetch(folder):
    """The templates out of the source package, which is not built."""
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as d:
        pip = [sys.executable, "-m", "pip"]
        # pip asks the package's build system for its name, and with it here nothing is built.
        subprocess.run([*pip, "install", "-q", "--target", f"{d}/build", "scikit-build-core"],
                       check=True, capture_output=True, timeout=200)
        subprocess.run([*pip, "download", "-q", "--no-deps", "--no-build-isolation",
                        "--no-binary", ":all:", "-d", d, PACKAGE], check=True,
                       capture_output=True, timeout=400,
                       env={**os.environ, "PYTHONPATH": f"{d}/build"})
        with tarfile.open(glob.glob(f"{d}/*.tar.gz")[0]) as tar:
            for member in tar:
                if "/models/templates/" in member.name and member.name.endswith(".jinja"):
                    with open(f"{folder}/{os.path.basename(member.name)}", "wb") as f:
                        f.write(tar.extractfile(member).read())


def templates():
    peers = os.environ.get("TERN_PEERS", "/tmp/tern-peers")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    here = os.path.join(cache, "tern", "templates")
    for folder in (f"{peers}/llama.cpp/models/templates", here):
        found = sorted(glob.glob(f"{folder}/*.jinja"))
        if found:
            return found
    try:
        fetch(here)
    except (subprocess.SubprocessError, OSError) as e:
        ternrun.skip(f"{PACKAGE} could not be fetched: {e}")
    return sorted(glob.glob(f"{here}/*.jinja"))


def ours(path, cases):
    lines = []
    for case in cases:
        parts = [f"@{k}\t{v}" for k, v in OWN.items()]
        parts += [f"{k}\t{json.dumps(v)}" for k, v in case.items()]
        lines.append("\t".join(parts))
    done = subprocess.run([sys.argv[1], path], input="\n".join(lines) + "\n", text=True,
                          capture_output=True, check=True, timeout=300)
    return done.stdout.split("\n")


def compare(name, path, source, cases):
    """Differences of one template; equal, refused by both."""
    try:
        compiled = ENV.from_string(source)
    except Exception as e:  # noqa: BLE001 Python's own syntax errors are among them
        compiled, why = None, e
    wrong = equal = refused = 0
    for case, line in zip(cases, ours(path, cases)):
        try:
            want = compiled.render(**case, **OWN) if compiled else None
        except Exception as e:  # noqa: BLE001 whatever stops Python
            want, why = None, e
        if want and re.search(r" at 0x|dict_[a-z]+\(|range\(", want):
            want, why = None, "an address, or a text that only a programmer reads"
        word, _, rest = line.partition(" ")
        got = bytes.fromhex(rest.rpartition(" ")[2]).decode() if word == "ok" else None
        equal += got is not None and got == want
        refused += got is None and want is None
        if got != want:
            wrong += 1
            if wrong <= 3:
                print(f"{name}: {json.dumps(case)[:300]}\n  python: "
                      f"{want if want is not None else why!r}\n  ours:   "
                      f"{got if got is not None else line!r}")
    return wrong, equal, refused


def main():
    wrong = equal = refused = 0
    with tempfile.TemporaryDirectory() as d:
        for i, (source, cases) in enumerate(template_cases.snippets()):
            path = f"{d}/snippet{i}"
            with open(path, "w", encoding="utf-8", newline="") as f:
                f.write(source)
            w, e, r = compare(repr(source), path, source, cases)
            wrong, equal, refused = wrong + w, equal + e, refused + r
        print(f"snippets: {equal} equal, {refused} refused by both, {wrong} differ")
        bad = wrong
        wrong = equal = refused = n = 0
        cases = template_cases.conversations()
        for path in templates():
            with open(path, encoding="utf-8") as f:
                w, e, r = compare(os.path.basename(path), path, f.read(), cases)
            wrong, equal, refused, n = wrong + w, equal + e, refused + r, n + 1
        print(f"{n} templates, {len(cases)} conversations: {equal} equal, {refused} refused by "
              f"both, {wrong} differ")
    sys.exit(bool(wrong or bad or n == 0))


main()
