"""Writes GGUF files, version 2 or 3, with the standard library alone."""
import struct

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
PACK = {U8: "<B", I8: "<b", U16: "<H", I16: "<h", U32: "<I", I32: "<i", F32: "<f", BOOL: "<?",
        U64: "<Q", I64: "<q", F64: "<d"}


def text(s):
    b = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(b)) + b


def value(kind, v):
    return text(v) if kind == STRING else struct.pack(PACK[kind], v)


class Writer:
    """Keys and tensors in the order they were added; tensors are (name, dims, type id, bytes)."""

    def __init__(self, architecture, version=3, alignment=32):
        self.version, self.alignment = version, alignment
        self.keys, self.tensors = [], []
        self.architecture = architecture
        self.key("general.architecture", STRING, architecture)
        if alignment != 32:
            self.key("general.alignment", U32, alignment)

    def key(self, name, kind, v):
        name = self.architecture + name if name.startswith(".") else name
        self.keys.append(text(name) + struct.pack("<I", kind) + value(kind, v))

    def array(self, name, kind, values):
        name = self.architecture + name if name.startswith(".") else name
        self.keys.append(text(name) + struct.pack("<IIQ", ARRAY, kind, len(values))
                         + b"".join(value(kind, v) for v in values))

    def tensor(self, name, dims, kind, data):
        self.tensors.append((name, dims, kind, data))

    def pad(self, n):
        return b"\0" * (-n % self.alignment)

    def save(self, path, keys=None, tensors=None):
        keys = self.keys if keys is None else keys
        tensors = self.tensors if tensors is None else tensors
        head = b"GGUF" + struct.pack("<IQQ", self.version, len(tensors), len(keys)) + b"".join(keys)
        at = 0
        for name, dims, kind, data in tensors:
            head += text(name) + struct.pack("<I", len(dims))
            head += b"".join(struct.pack("<Q", d) for d in dims) + struct.pack("<IQ", kind, at)
            at += len(data) + len(self.pad(len(data)))
        with open(path, "wb") as f:
            f.write(head + self.pad(len(head)))
            for _, _, _, data in tensors:
                f.write(data + self.pad(len(data)))

    def save_split(self, paths):
        """The same model as several files: keys in the first, tensors dealt out in order."""
        n = len(paths)
        per = -(-len(self.tensors) // n)
        for i, path in enumerate(paths):
            part = Writer(self.architecture, self.version, self.alignment)
            part.keys = list(self.keys) if i == 0 else []
            part.key("split.no", U16, i)
            part.key("split.count", U16, n)
            part.key("split.tensors.count", I32, len(self.tensors))
            part.save(path, tensors=self.tensors[i * per:(i + 1) * per])
