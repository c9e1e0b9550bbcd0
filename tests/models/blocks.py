"""Rows of random weights in every tensor type.

A type's random blocks are random bytes whose scales are then set so that the values that they
decode to have about zero mean and the deviation asked for. Nothing is quantised: what a file
means is what its decoder says, and any bytes mean something. Random numbers come as integers
from a frozen stream (RandomState.bytes) and are scaled by exact or correctly rounded
operations, so every machine writes the same files.
"""
import math

import numpy as np

# name: (type id, elements, bytes, [offsets of f16 scales], [offsets of f16 minimums],
#        deviation of the decoded values at scale 1, minimum that centres them at scale 1)
TYPES = {
    "F32": (0, 1, 4), "F16": (1, 1, 2), "BF16": (30, 1, 2),
    "Q4_0": (2, 32, 18, 0, None, 4.6, 0), "Q4_1": (3, 32, 20, 0, 2, 4.6, -7.5),
    "Q5_0": (6, 32, 22, 0, None, 9.2, 0), "Q5_1": (7, 32, 24, 0, 2, 9.2, -15.5),
    "Q8_0": (8, 32, 34, 0, None, 74, 0),
    "Q2_K": (10, 256, 84, 80, 82, 15, 1.5), "Q3_K": (11, 256, 110, 108, None, 43, 0),
    "Q4_K": (12, 256, 144, 0, 2, 300, 7.5), "Q5_K": (13, 256, 176, 0, 2, 600, 15.5),
    "Q6_K": (14, 256, 210, 208, None, 1370, 0),
    "IQ2_XXS": (16, 256, 66, 0, None, 60, 0), "IQ2_XS": (17, 256, 74, 0, None, 60, 0),
    "IQ3_XXS": (18, 256, 98, 0, None, 150, 0), "IQ1_S": (19, 256, 50, 0, None, 7, 0),
    "IQ4_NL": (20, 32, 18, 0, None, 68, 0), "IQ3_S": (21, 256, 110, 0, None, 160, 0),
    "IQ2_S": (22, 256, 82, 0, None, 60, 0), "IQ4_XS": (23, 256, 136, 0, None, 1250, 0),
    "IQ1_M": (29, 256, 56, None, None, 7, 0), "TQ1_0": (34, 256, 54, 52, None, 0.82, 0),
    "TQ2_0": (35, 256, 66, 64, None, 1.2, 0), "MXFP4": (39, 32, 17, None, None, 5.85, 0),
}


def normals(rng, n):
    """About normal: sums of four 16-bit integers, centred and scaled; the same everywhere."""
    u = np.frombuffer(rng.bytes(8 * n), "<u2").reshape(n, 4).astype(np.int64).sum(1)
    return (u - 131070) / (65536 * math.sqrt(4 / 12))


def to_bf16(x):
    u = np.asarray(x, "<f4").view("<u4").astype(np.uint64)
    return ((u + 0x7fff + ((u >> 16) & 1)) >> 16).astype("<u2")


def scales(rng, n, size):
    """Scales between 3/4 and 5/4 of size."""
    return (48 + np.frombuffer(rng.bytes(n), np.uint8) % 33) / 64 * size


def row_bytes(kind, n):
    return n // TYPES[kind][1] * TYPES[kind][2]


def random_rows(rng, kind, n_rows, n_cols, deviation):
    """The bytes of n_rows rows of n_cols weights."""
    n_elems, n_bytes = TYPES[kind][1:3]
    if n_cols % n_elems:
        raise ValueError(f"{kind}: {n_cols} columns, a multiple of {n_elems} is needed")
    if n_elems == 1:
        x = normals(rng, n_rows * n_cols) * deviation
        if kind == "BF16":
            return to_bf16(x).tobytes()
        return x.astype("<f2" if kind == "F16" else "<f4").tobytes()
    n = n_rows * n_cols // n_elems
    at, at_min, spread, centre = TYPES[kind][3:]
    b = np.frombuffer(rng.bytes(n * n_bytes), np.uint8).reshape(n, n_bytes).copy()
    d = scales(rng, n, deviation / spread)
    if kind == "MXFP4":
        b[:, 0] = np.round(128 + np.log2(d)).astype(np.uint8)
        return b.tobytes()
    half = d.astype("<f2")
    if kind == "IQ1_M":  # the four nibbles of d are the top ones of four 16-bit words
        words = b[:, 48:56].view("<u2")
        bits = half.view("<u2")
        for k in range(4):
            words[:, k] = (words[:, k] & 0x0fff) | (((bits >> (4 * k)) & 15) << 12)
        b[:, 48:56] = words.view(np.uint8)
        return b.tobytes()
    b[:, at:at + 2] = half.view(np.uint8).reshape(n, 2)
    if at_min is not None:
        least = (half.astype(np.float64) * centre).astype("<f2")
        b[:, at_min:at_min + 2] = least.view(np.uint8).reshape(n, 2)
    return b.tobytes()
