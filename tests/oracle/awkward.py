#!/usr/bin/env python3
"""Texts that tokenizers get wrong, always the same ones; and what llama.cpp makes of them.

    awkward.py [NAME...]    asks llama-server and writes results/awkward-NAME.json

Needs llama-server (TERN_LLAMA: its folder) and the models (TERN_MODELS); the check that reads
the result, tokenizers.py, needs only the models.
"""
import json
import os
import random
import sys

PARTS = [
    " ", "  ", "   ", "\n", "\n\n", "\r\n", "\r\n\r\n", "\t", " \n", "\n ", "\u00a0", "\u3000",
    "\u0085", "\u2028", "\u200b", "\ufeff", "a", "Hello", "WORLD", "don't", "I'LL", "'s", "'",
    "\u2019s", "1", "12", "123", "2024", "3.14159", "1,000,000", "\u00b2", "\u2167", "\u0663",
    "\u096a\u096b", "\u00bd", "na\u00efve", "e\u0301", "\u0301",
    "\u0928\u092e\u0938\u094d\u0924\u0947", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "\u65e5\u672c\u8a9e", "\ud55c\uad6d\uc5b4", "\u4f60\u597d\uff0c",
    "\u041f\u0440\u0438\u0432\u0435\u0442", "\u0645\u0631\u062d\u0628\u0627",
    "\u05e9\u05dc\u05d5\u05dd", "\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\U0001f1e9\U0001f1ea", "\u2764\ufe0f", "\U0001d54f", "\U00020000", "!", "...", "!!!", "?!",
    "==", "!=", "->", "//", "/*", "*/", "(", ")", "{}", "[0]", "$1", "#", "@user", "a_b", "a-b",
    "https://x.org/?q=a%20b", "\\n", "\\", "\"", "``", "```py\n", "\u2581", "\u2581\u2581",
    "\u0120", "<0x0A>", "<|im_start|>", "<|im_end|>", "<|im_", "end|>", "<bos>", "<eos>",
    "<start_of_turn>", "<end_of_turn>", "<unk>", "<pad>", "<|endoftext|>", "<s>", "<td>",
    "<|fim_prefix|>", "\x01", "\x7f", "\u0378", "\ufffd", "\U0010ffff",
]


def texts():
    out = list(PARTS)
    for c in ["a", "A", " ", "\n", "7", ".", "=", "-", "\t", "\u65e5", "\U0001f600", "\u0301",
              "\u00e9"]:
        out += [c * n for n in (2, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33, 64, 100)]
    rng = random.Random(20)
    for n in (2, 2, 3, 3, 4, 6, 10):
        out += ["".join(rng.choice(PARTS) for _ in range(n)) for _ in range(60)]
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/"
    out += ["".join(rng.choice(letters) for _ in range(n)) for n in (30, 50, 200)]
    out += ["".join(chr(rng.choice((rng.randrange(32, 127), rng.randrange(128, 0x3000),
                                    rng.randrange(0x3000, 0xd800),
                                    rng.randrange(0x1f000, 0x20000))))
                    for _ in range(20)) for _ in range(60)]
    return out


def main():
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import peer
    import ternrun
    for name in sys.argv[1:] or ternrun.SMALL:
        server = peer.Server(ternrun.model(name))
        rows = {}
        for key, special in (("plain", False), ("special", True)):
            rows[key] = [server.post("/tokenize", {"content": t, "add_special": False,
                                                   "parse_special": special})["tokens"]
                         for t in texts()]
        server.close()
        here = os.path.dirname(os.path.abspath(__file__))
        with open(os.path.join(here, "results", f"awkward-{name}.json"), "w") as f:
            f.write("{" + ",\n".join(f'"{key}": [\n' + ",\n".join(
                json.dumps(ids, separators=(",", ":")) for ids in rows[key]) + "]"
                for key in rows) + "}\n")


if __name__ == "__main__":
    main()
