"""Rows of quantised bytes to floats, in numpy, from the formats' description.

The lattice types (IQ1, IQ2, IQ3) need tables of tens of kilobytes; for these the gguf package
is asked, where it is installed.
"""
import numpy as np

# id: (name, elements, bytes)
TYPES = {0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20),
         6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 10: ("Q2_K", 256, 84),
         11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176),
         14: ("Q6_K", 256, 210), 16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74),
         18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50), 20: ("IQ4_NL", 32, 18),
         21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136),
         29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54),
         35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17)}
IDS = {row[0]: i for i, row in TYPES.items()}
NL = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113])
F4 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12])


class NoDecoder(Exception):
    """The type needs the gguf package, which is not installed."""


def row_bytes(kind, n):
    _, elems, size = TYPES[kind]
    return n // elems * size


def half(b, at):
    """The f16 at an offset of each block, as a column."""
    return np.ascontiguousarray(b[:, at:at + 2]).view("<f2").astype(np.float64)


def nibbles(b):
    """16 bytes a block: the low nibbles, then the high ones."""
    return np.concatenate([b & 15, b >> 4], 1).astype(np.int64)


def bits32(b, at):
    word = np.ascontiguousarray(b[:, at:at + 4]).view("<u4")
    return ((word >> np.arange(32, dtype=np.uint32)) & 1).astype(np.int64)


def q4_0(b):
    return half(b, 0) * (nibbles(b[:, 2:]) - 8)


def q4_1(b):
    return half(b, 0) * nibbles(b[:, 4:]) + half(b, 2)


def q5_0(b):
    return half(b, 0) * ((nibbles(b[:, 6:]) | bits32(b, 2) << 4) - 16)


def q5_1(b):
    return half(b, 0) * (nibbles(b[:, 8:]) | bits32(b, 4) << 4) + half(b, 2)


def q8_0(b):
    return half(b, 0) * b[:, 2:].view(np.int8)


def iq4_nl(b):
    return half(b, 0) * NL[nibbles(b[:, 2:])]


def mxfp4(b):
    return np.ldexp(1.0, b[:, :1].astype(int) - 128) * F4[nibbles(b[:, 1:])]


def two_bits(b, at):
    """64 bytes: element 128 n + 32 j + l is bits 2j of byte 32 n + l."""
    q = b[:, at:at + 64].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8).reshape(4, 1)
    return (q & 3).astype(np.int64).reshape(-1, 256)


def q2_k(b):
    s = b[:, :16]
    scale, least = [np.repeat(x.astype(np.int64), 16, 1) for x in (s & 15, s >> 4)]
    return half(b, 80) * scale * two_bits(b, 16) - half(b, 82) * least


def q3_k(b):
    high = b[:, :32].reshape(-1, 1, 32) >> np.arange(8, dtype=np.uint8).reshape(8, 1)
    q = two_bits(b, 32) - 4 * (1 - (high & 1).astype(np.int64).reshape(-1, 256))
    s = b[:, 96:108].astype(np.int64)
    k = np.arange(16)
    low = np.where(k < 8, s[:, k % 8], s[:, k % 8] >> 4) & 15
    scale = (low | ((s[:, 8 + k % 4] >> (2 * (k // 4))) & 3) << 4) - 32
    return half(b, 108) * np.repeat(scale, 16, 1) * q


def six_bit_scales(s):
    s = s.astype(np.int64)
    lo, hi, top = s[:, :4], s[:, 4:8], s[:, 8:]
    scale = np.concatenate([lo & 63, (top & 15) | (lo >> 6) << 4], 1)
    least = np.concatenate([hi & 63, (top >> 4) | (hi >> 6) << 4], 1)
    return np.repeat(scale, 32, 1), np.repeat(least, 32, 1)


def four_bits(b, at):
    """128 bytes: 32 low nibbles, then 32 high ones, of each 32 bytes."""
    q = b[:, at:at + 128].reshape(-1, 4, 1, 32) >> np.array([0, 4], np.uint8).reshape(2, 1)
    return (q & 15).astype(np.int64).reshape(-1, 256)


def q4_k(b):
    scale, least = six_bit_scales(b[:, 4:16])
    return half(b, 0) * scale * four_bits(b, 16) - half(b, 2) * least


def q5_k(b):
    scale, least = six_bit_scales(b[:, 4:16])
    high = b[:, 16:48].reshape(-1, 1, 32) >> np.arange(8, dtype=np.uint8).reshape(8, 1)
    q = four_bits(b, 48) | (high & 1).astype(np.int64).reshape(-1, 256) << 4
    return half(b, 0) * scale * q - half(b, 2) * least


def q6_k(b):
    low = b[:, :128].reshape(-1, 2, 1, 64) >> np.array([0, 4], np.uint8).reshape(2, 1)
    q = (low & 15).astype(np.int64).reshape(-1, 256) | two_bits(b, 128) << 4
    scale = np.repeat(b[:, 192:208].view(np.int8).astype(np.int64), 16, 1)
    return half(b, 208) * scale * (q - 32)


def iq4_xs(b):
    high = np.ascontiguousarray(b[:, 2:4]).view("<u2").astype(np.int64)
    k = np.arange(8)
    low = b[:, 4 + k // 2].astype(np.int64) >> (4 * (k & 1))
    scale = ((low & 15) | ((high >> (2 * k)) & 3) << 4) - 32
    q = NL[nibbles(b[:, 8:].reshape(-1, 16)).reshape(-1, 256)]
    return half(b, 0) * np.repeat(scale, 32, 1) * q


def tq1_0(b):
    def trits(v, n):
        v = (v.astype(np.int64)[:, None, :] * 3 ** np.arange(n).reshape(n, 1)) % 256
        return (v * 3 >> 8).reshape(len(b), -1) - 1
    q = np.concatenate([trits(b[:, :32], 5), trits(b[:, 32:48], 5), trits(b[:, 48:52], 4)], 1)
    return half(b, 52) * q


def tq2_0(b):
    return half(b, 64) * (two_bits(b, 0) - 1)


DECODERS = {"Q4_0": q4_0, "Q4_1": q4_1, "Q5_0": q5_0, "Q5_1": q5_1, "Q8_0": q8_0, "Q2_K": q2_k,
            "Q3_K": q3_k, "Q4_K": q4_k, "Q5_K": q5_k, "Q6_K": q6_k, "IQ4_NL": iq4_nl,
            "IQ4_XS": iq4_xs, "TQ1_0": tq1_0, "TQ2_0": tq2_0, "MXFP4": mxfp4}


def by_package(name, raw):
    try:
        import gguf
    except ImportError:
        raise NoDecoder(f"{name} needs the Python package gguf") from None
    return gguf.dequantize(np.ascontiguousarray(raw), gguf.GGMLQuantizationType[name])


def rows_to_floats(kind, raw, n_cols):
    """raw: [rows, bytes of a row]. Returns float32 [rows, n_cols]."""
    name, _, size = TYPES[kind]
    n_rows = len(raw)
    raw = np.ascontiguousarray(raw)
    if name == "F32":
        return raw.view("<f4").reshape(n_rows, n_cols)
    if name == "F16":
        return raw.view("<f2").astype(np.float32).reshape(n_rows, n_cols)
    if name == "BF16":
        return (raw.view("<u2").astype(np.uint32) << 16).view(np.float32).reshape(n_rows, n_cols)
    if name not in DECODERS:
        return by_package(name, raw).reshape(n_rows, n_cols).astype(np.float32)
    out = np.empty((n_rows, n_cols), np.float32)
    step = max(1, (1 << 22) // n_cols)  # a few rows at a time: the float64 in between is large
    for i in range(0, n_rows, step):
        part = DECODERS[name](raw[i:i + step].reshape(-1, size))
        out[i:i + step] = part.reshape(-1, n_cols)
    return out
