#!/usr/bin/env python3
"""Writes runtime/unicode_data.h: the character data that the tokenizers need.

    unicode_tables.py > runtime/unicode_data.h

Origin: the Unicode Character Database, through Python's `unicodedata`, or through the package
`unicodedata2` where that is installed, which holds one stated version of it. The committed file
is of Unicode 15.1 (`pip install unicodedata2==15.1.0`), as llama.cpp's tables are: a character
that one side knows as a letter and the other as unassigned would be split differently.
"""
try:
    import unicodedata2 as ucd
except ImportError:
    import unicodedata as ucd

BLOCK = 128
LIMIT = 0x110000
CLASS = {"Lu": 1, "Ll": 2, "Lt": 3, "Lm": 4, "Lo": 5, "Mn": 6, "Mc": 7, "Me": 7, "Cn": 0}
MAJOR = {"N": 8, "P": 9, "S": 10, "Z": 11, "C": 12}
# White_Space that is not of category Z.
SPACES = {9, 10, 11, 12, 13, 0x85}

# The letters of DeepSeek LLM's second pattern, from its tokenizer.json: cased letters of an
# older Unicode, so they are listed and not derived.
DEEPSEEK = (
    "41-5a 61-7a b5 c0-d6 d8-f6 f8-1ba 1bc-1bf 1c4-293 295-2af 370-373 376 377 37b-37d 37f 386 "
    "388-38a 38c 38e-3a1 3a3-3f5 3f7-481 48a-52f 531-556 10a0-10c5 13a0-13f5 13f8-13fd "
    "1c90-1cba 1cbd-1cbf 1d00-1d2b 1d6b-1d77 1d79-1d9a 1e00-1f15 1f18-1f1d 1f20-1f45 1f48-1f4d "
    "1f50-1f57 1f59 1f5b 1f5d 1f5f-1f7d 1f80-1fb4 1fb6-1fbc 1fbe 1fc2-1fc4 1fc6-1fcc 1fd0-1fd3 "
    "1fd6-1fdb 1fe0-1fec 1ff2-1ff4 1ff6-1ffc 2102 2107 210a-2113 2115 2119-211d 2124 2126 2128 "
    "212a-212d 212f-2134 2139 213c-213f 2145-2149 214e 2183 2184 2c00-2c7b 2c7e-2ce4 2ceb-2cee "
    "2cf2 2cf3 a640-a66d a680-a69b a722-a76f a771-a787 a78b-a78e ab70-abbf fb00-fb06 fb13-fb17 "
    "ff21-ff3a ff41-ff5a 10400-1044f 104b0-104d3 104d8-104fb 10c80-10cb2 10cc0-10cf2 "
    "118a0-118df 1e900-1e943 ")


def class_of(c):
    category = ucd.category(chr(c))
    if c in SPACES:
        return MAJOR["Z"]
    return CLASS[category] if category in CLASS else MAJOR[category[0]]


def classes():
    blocks, index = {}, []
    for start in range(0, LIMIT, BLOCK):
        block = tuple(class_of(c) for c in range(start, start + BLOCK))
        index.append(blocks.setdefault(block, len(blocks)))
    assert len(blocks) <= 256
    packed = []
    for block in blocks:
        packed += [block[i] | block[i + 1] << 4 for i in range(0, BLOCK, 2)]
    return index, packed


def lower_ranges():
    """(first, last, stride, delta): every stride-th from first to last lowers by adding delta."""
    pairs = []
    for c in range(LIMIT):
        low = chr(c).lower()
        if len(low) == 1 and ord(low) != c and not 0xd800 <= c < 0xe000:
            pairs.append((c, ord(low) - c))
    out = []
    for c, delta in pairs:
        if out and out[-1][3] == delta:
            first, last, stride, _ = out[-1]
            step = c - last
            if (first == last and step in (1, 2)) or step == stride:
                out[-1] = (first, c, step, delta)
                continue
        out.append((c, c, 1, delta))
    return out


def bases():
    """Letters whose canonical decomposition, less its non-spacing marks, is one other letter."""
    out = []
    for c in range(LIMIT):
        if 0xac00 <= c < 0xd7a4 or 0xd800 <= c < 0xe000:
            continue  # Hangul is decomposed by arithmetic
        full = [ord(x) for x in ucd.normalize("NFD", chr(c)) if ucd.category(x) != "Mn"]
        if full and full[0] != c:
            out.append((c, full[0]))
    return out


def deepseek_ranges():
    spans = [[int(x, 16) for x in word.split("-")] for word in DEEPSEEK.split()]
    return [(span[0], span[-1]) for span in spans]


def emit(ctype, name, items):
    print(f"static const {ctype} {name}{'' if name.endswith(']') else '[]'} = {{")
    line = "   "
    for item in items:
        word = " " + item + ","
        if len(line) + len(word) > 100:
            print(line)
            line = "   "
        line += word
    print(line)
    print("};\n")


def rows(items):
    return ["{" + ", ".join(str(x) for x in item) + "}" for item in items]


def main():
    print(f"""/* unicode_data.h: character data of Unicode {ucd.unidata_version}, for unicode.c alone.
 * Made by tools/gen/unicode_tables.py from the Unicode Character Database; not edited by hand. */
#ifndef TERN_UNICODE_DATA_H
#define TERN_UNICODE_DATA_H

#include <stdint.h>

enum {{ CLASS_BLOCK = {BLOCK} }};
""")
    index, packed = classes()
    print("/* Which packed block holds the classes of each run of CLASS_BLOCK code points. */")
    emit("uint8_t", "class_index", [str(i) for i in index])
    print("/* Classes by enum tern_cp_class, two a byte, the lower code point in the low bits. */")
    emit("uint8_t", "class_blocks", [str(i) for i in packed])
    print("struct lower_range { uint32_t first, last; uint32_t stride; int32_t delta; };\n")
    emit("struct lower_range", "lower_ranges", rows(lower_ranges()))
    print("/* A composed letter and the letter under its marks. */")
    emit("uint32_t", "base_letters[][2]", [f"{{{a}, {b}}}" for a, b in bases()])
    print("/* First and last of the letters of DeepSeek LLM's second pattern. */")
    emit("uint32_t", "deepseek_letters[][2]", [f"{{{a}, {b}}}" for a, b in deepseek_ranges()])
    print("#endif")


main()
