#!/usr/bin/env python3
"""splits.py SPLIT_WORDS: our hand-written pre-tokenizers against the patterns themselves, run by
a backtracking engine (the package `regex`). Answers 77 where that is not installed.

The texts are all sequences of up to five parts from a set that has every class of character that
a pattern asks for, and random longer ones.
"""
import itertools
import random
import subprocess
import sys

try:
    import regex
except ImportError:
    print("skipped: the Python package `regex` is not installed")
    sys.exit(77)

CI = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
G2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
TAIL = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
L3 = CI + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + TAIL
Q2 = L3.replace("{1,3}", "")
Q35 = CI + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + TAIL
U = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
L = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
P = r"[^\r\n\p{L}\p{N}]?"
O2 = (f"{P}{U}*{L}+{CI}?|{P}{U}+{L}*{CI}?" + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + TAIL)
TK = f"{P}{U}*{L}+|{P}{U}+{L}*" + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + TAIL
V3 = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
      r"| ?[\p{P}\p{S}]+[\r\n]*" + TAIL)
BLOOM = r" ?[^(\s|.,!?…。，、।۔،)]+"
CJK = "[一-龥\u0800-一가-\ud7ff]+"
PATTERNS = {
    "gpt-2": [G2],
    "smollm": [r"\p{N}", G2],
    "llama3": [L3],
    "qwen2": [Q2],
    "qwen35": [Q35],
    "gpt-4o": [O2],
    "tekken": [TK],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK, r"\p{N}"],
    "deepseek-v3": [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", V3],
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", G2, "[0-9][0-9][0-9]"],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", G2, r"\p{N}+", "[0-9][0-9][0-9]"],
    "bloom": [BLOOM],
    "viking": [BLOOM, r"\p{N}"],
}
PARTS = ["a", "B", "ª", "ǅ", "日", "1", "²", " ", "\n", "\r", "\t", "\u3000", "'", "s", "ll", "-",
         "/", "$", "`", "\u0301", "\u0903", "😀", "\0", "\u200d", "\u0378", "，"]


def split(stages, text):
    pieces = [text]
    for stage in stages:
        out = []
        for piece in pieces:
            at = 0
            for m in stage.finditer(piece):
                if m.start() > at:
                    out.append(piece[at:m.start()])
                if m.end() > m.start():
                    out.append(m.group())
                at = m.end()
            if at < len(piece):
                out.append(piece[at:])
        pieces = out
    return pieces


def texts():
    for n in range(1, 4):
        for parts in itertools.product(PARTS, repeat=n):
            yield "".join(parts)
    rng = random.Random(1)
    for n in (4, 5, 8, 13, 40):
        for _ in range(3000):
            yield "".join(rng.choice(PARTS) for _ in range(n))


def main():
    corpus = list(texts())
    lines = "".join(t.encode().hex() + "\n" for t in corpus)
    failed = 0
    for name, patterns in PATTERNS.items():
        stages = [regex.compile(p) for p in patterns]
        done = subprocess.run([sys.argv[1], name], input=lines, capture_output=True, text=True,
                              check=False)
        ours = [[int(x) for x in line.split()] for line in done.stdout.split("\n")[:-1]]
        assert done.returncode == 0 and len(ours) == len(corpus), name
        wrong = 0
        for text, lengths in zip(corpus, ours):
            right = [len(w.encode()) for w in split(stages, text)]
            if right != lengths:
                wrong += 1
                if wrong <= 3:
                    print(f"{name}: {text!r}: {lengths}, expected {right}")
        print(f"{name}: {len(corpus)} texts, {wrong} differ")
        failed += wrong
    return failed > 0


sys.exit(main())
