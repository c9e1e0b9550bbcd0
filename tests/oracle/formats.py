#!/usr/bin/env python3
"""Decoded blocks against the `gguf` package, the formats' own dequantiser.

Random blocks of every type, among them every bit pattern of the f16 scales (and of MXFP4's
exponent). Values have to be equal bit for bit, but for two liberties:
 - any NaN equals any other;
 - +0 equals -0: where a 6-bit or 8-bit scale is 0 or a code is, gguf multiplies floats, so 0 gets
   a sign; here scale and code are multiplied as integers first.
gguf rounds nothing differently: d * scale * code is exact in float32 for every format, and the
subtraction or addition of the minimum is the one rounding for both.

Usage: formats.py DECODE_BLOCKS
"""
import struct
import subprocess
import sys

try:
    import numpy as np
    import gguf
    from gguf.quants import dequantize
except ImportError as missing:
    print(f"skipped: Python package {missing.name} is not installed (pip install gguf)")
    sys.exit(77)

T = gguf.GGMLQuantizationType
# The offsets of f16 fields in a block.
F16 = {"F16": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
       "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
       "IQ1_S": [0], "IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0], "IQ3_XXS": [0], "IQ3_S": [0],
       "IQ4_NL": [0], "IQ4_XS": [0], "TQ1_0": [52], "TQ2_0": [64]}
TYPES = list(F16) + ["F32", "BF16", "MXFP4", "IQ1_M"]


def blocks(name, rng):
    """65536 blocks, in rows of one; scale fields walk over all patterns, each in its own order."""
    size = gguf.GGML_QUANT_SIZES[T[name]][1]
    rows = rng.integers(0, 256, (65536, size), dtype=np.uint8)
    for offset in F16.get(name, []):
        patterns = rng.permutation(65536).astype(np.uint16)
        rows[:, offset:offset + 2] = patterns.view(np.uint8).reshape(-1, 2)
    if name == "BF16":
        rows[:] = np.arange(65536, dtype=np.uint16).view(np.uint8).reshape(-1, 2)
    if name == "MXFP4":
        rows[:, 0] = np.arange(65536) % 256
    if name == "IQ1_M":  # a quarter of the f16 in each top nibble
        patterns = rng.permutation(65536)
        for k in range(4):
            rows[:, 49 + 2 * k] = (rows[:, 49 + 2 * k] & 15) | (patterns >> 4 * k & 15) << 4
    return rows


def check(program, name, rng):
    n_elems = gguf.GGML_QUANT_SIZES[T[name]][0]
    raw = blocks(name, rng)
    n_different = 0
    for part in np.split(raw, 64):
        request = struct.pack("<II", T[name], part.shape[0] * n_elems) + part.tobytes()
        answer = subprocess.run([program], input=request, stdout=subprocess.PIPE, check=True).stdout
        ours = np.frombuffer(answer, dtype=np.float32)
        with np.errstate(all="ignore"):
            theirs = np.asarray(dequantize(part, T[name]), dtype=np.float32).reshape(-1)
        assert ours.shape == theirs.shape, (name, ours.shape, theirs.shape)
        same = ours.view(np.uint32) == theirs.view(np.uint32)
        same |= np.isnan(ours) & np.isnan(theirs)
        same |= (ours == 0) & (theirs == 0)
        bad = np.flatnonzero(~same)
        if bad.size and not n_different:
            i = bad[0]
            print(f"{name}: element {i % n_elems}: {ours[i]!r}, gguf says {theirs[i]!r}; block "
                  f"{part.reshape(part.shape[0], -1)[i // n_elems].tobytes().hex()}")
        n_different += bad.size
    print(f"{name}: {raw.shape[0]} blocks, {n_different} values differ")
    return n_different == 0


def main():
    rng = np.random.default_rng(20260101)
    fine = [check(sys.argv[1], name, rng) for name in TYPES]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
