#!/usr/bin/env python3
"""Writes quant/q_iq_tables.h: the lattice points of the IQ formats, in compact codes.

The numbers are data of the formats, from ggml (MIT); they are taken from its Python package
`gguf` (pip install gguf).  Usage: iq_tables.py >quant/q_iq_tables.h

An entry of 8 elements has 2 bits each, one of 4 has 3: 16 bits hold either.
"""
import sys

from gguf import quants

GRIDS = [("iq2_xxs", quants.IQ2_XXS), ("iq2_xs", quants.IQ2_XS), ("iq2_s", quants.IQ2_S),
         ("iq3_xxs", quants.IQ3_XXS), ("iq3_s", quants.IQ3_S), ("iq1", quants.IQ1_S)]


def codes(quant):
    """The grid's distinct values in ascending order, and its entries as indices into them."""
    quant.init_grid()
    rows = quant.grid.reshape(quant.grid_shape).astype(int).tolist()
    values = sorted({x for row in rows for x in row})
    bits = 2 if len(rows[0]) == 8 else 3
    assert len(values) <= 1 << bits
    return values, [sum(values.index(x) << bits * i for i, x in enumerate(row)) for row in rows]


def main():
    out = sys.stdout.write
    out("/* q_iq_tables.h: lattice points of the IQ formats; data of ggml (MIT).\n"
        " * Written by tools/gen/iq_tables.py, not by hand. Element i of an entry is\n"
        " * values[code >> 2 i & 3] where entries have 8 elements, values[code >> 3 i & 7] where 4. */\n"
        "#ifndef TERN_Q_IQ_TABLES_H\n#define TERN_Q_IQ_TABLES_H\n\n#include <stdint.h>\n")
    for name, quant in GRIDS:
        values, entries = codes(quant)
        padded = values + [0] * ((4 if len(values) < 4 else 8) - len(values))
        out(f"\nstatic const int8_t {name}_values[{len(padded)}] = "
            f"{{{', '.join(map(str, padded))}}};\n"
            f"static const uint16_t {name}_grid[{len(entries)}] = {{\n")
        for i in range(0, len(entries), 12):
            out("    " + " ".join(f"0x{c:04x}," for c in entries[i:i + 12]) + "\n")
        out("};\n")
    out("\n#endif\n")


if __name__ == "__main__":
    main()
