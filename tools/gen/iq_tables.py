#!/usr/bin/env python3
"""Writes quant/q_iq_tables.c: the lattice points of the IQ formats. q_iq_tables.h has their form.

The numbers are data of the formats, from ggml (MIT); they are taken from its Python package
`gguf` (pip install gguf).  Usage: iq_tables.py >quant/q_iq_tables.c
"""
import sys

from gguf import quants

GRIDS = [("iq2_xxs", quants.IQ2_XXS), ("iq2_xs", quants.IQ2_XS), ("iq2_s", quants.IQ2_S),
         ("iq3_xxs", quants.IQ3_XXS), ("iq3_s", quants.IQ3_S), ("iq1", quants.IQ1_S)]


def entries(quant):
    """The grid's entries, 32 bits each."""
    quant.init_grid()
    rows = quant.grid.reshape(quant.grid_shape).astype(int).tolist()
    if len(rows[0]) == 4:
        return [sum(x << 8 * i for i, x in enumerate(row)) for row in rows]
    values = sorted({x for row in rows for x in row})
    assert len(values) == 3
    return [sum(values.index(x) << 8 * (i % 4) + 4 * (i // 4) for i, x in enumerate(row))
            for row in rows]


def main():
    out = sys.stdout.write
    out("/* q_iq_tables.c: lattice points of the IQ formats; data of ggml (MIT).\n"
        " * Written by tools/gen/iq_tables.py, not by hand. */\n"
        '#include "quant/q_iq_tables.h"\n')
    for name, quant in GRIDS:
        codes = entries(quant)
        out(f"\nconst uint32_t tern_{name}_grid[{len(codes)}] = {{\n")
        for i in range(0, len(codes), 8):
            out("    " + " ".join(f"0x{c:08x}," for c in codes[i:i + 8]) + "\n")
        out("};\n")


if __name__ == "__main__":
    main()
