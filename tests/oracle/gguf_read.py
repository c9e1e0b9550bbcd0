"""Reads GGUF files (one, or all parts of a split one): keys as Python values, tensors as arrays.

Independent of Tern's own reader and of the gguf package; trusts the file.
"""
import re
import struct

import numpy as np

import dequant

SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q",
           11: "<q", 12: "<d"}


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        v = struct.unpack_from(form, self.data, self.at)[0]
        self.at += struct.calcsize(form)
        return v

    def bytes(self):
        n = self.take("<Q")
        self.at += n
        return bytes(self.data[self.at - n:self.at])

    def value(self, kind):
        if kind == 8:
            return self.bytes().decode("utf-8", "surrogateescape")
        if kind == 9:
            inner, n = self.take("<I"), self.take("<Q")
            if inner in (8, 9):
                return [self.value(inner) for _ in range(n)]
            a = np.frombuffer(self.data, np.dtype(SCALARS[inner].replace("?", "?")), n, self.at)
            self.at += a.nbytes
            return a
        return self.take(SCALARS[kind])


class Model:
    def __init__(self, path):
        self.keys, self.tensors = {}, {}
        m = re.match(r"(.*)-00001-of-(\d{5})\.gguf$", path)
        n = int(m[2]) if m else 1
        for i in range(n):
            self.read(f"{m[1]}-{i + 1:05d}-of-{n:05d}.gguf" if m else path)
        self.architecture = self.keys["general.architecture"]

    def read(self, path):
        data = np.memmap(path, np.uint8, "r")
        c = Cursor(data)
        if bytes(data[:4]) != b"GGUF":
            raise ValueError(f"{path}: no GGUF file")
        c.at = 8
        n_tensors, n_keys = c.take("<Q"), c.take("<Q")
        for _ in range(n_keys):
            name = c.bytes().decode()
            self.keys.setdefault(name, c.value(c.take("<I")))
        rows = []
        for _ in range(n_tensors):
            name = c.bytes().decode()
            dims = [c.take("<Q") for _ in range(c.take("<I"))]
            rows.append((name, dims, c.take("<I"), c.take("<Q")))
        align = self.keys.get("general.alignment", 32)
        start = -(-c.at // align) * align
        for name, dims, kind, offset in rows:
            self.tensors[name] = (data, dims, kind, start + offset)

    def get(self, key, default=None):
        return self.keys.get(self.architecture + key if key.startswith(".") else key, default)

    def has(self, name):
        return name in self.tensors

    def array(self, name, rows=None):
        """A tensor as float32, [rows, columns] or [n]; `rows` picks some rows of a matrix."""
        data, dims, kind, at = self.tensors[name]
        n_cols = dims[0]
        n_rows = int(np.prod(dims[1:])) if len(dims) > 1 else 1
        size = dequant.row_bytes(kind, n_cols)
        raw = data[at:at + n_rows * size].reshape(n_rows, size)
        if rows is not None:
            raw = raw[rows]
        out = dequant.rows_to_floats(kind, raw, n_cols)
        return out[0] if len(dims) == 1 else out
