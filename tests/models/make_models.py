#!/usr/bin/env python3
"""Makes small random models as GGUF files: every architecture, tensor type and awkward shape.

    make_models.py OUTDIR [NAME...]     writes them (all by default), prints list() as JSON
    make_models.py --list               prints it without writing

The files are the same bytes on every machine. Needs numpy. Vocabularies are real ones (they
encode any text, the two smallest excepted), weights are random and sized so that activations
stay near 1 and greedy text does not get stuck at once.
"""
import json
import os
import sys
import zlib

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import blocks  # noqa: E402
import gguf_write as g  # noqa: E402
import vocab  # noqa: E402

# Defaults of a model; a row of MODELS overrides what it is about.
BASE = dict(arch="llama", n_layers=2, n_embd=96, n_ff=160, n_heads=3, n_kv_heads=1, head_dim=32,
            kind="Q8_0", embd=None, out=None, kinds={}, vocab="spm", n_vocab=None, tied=False,
            n_ctx=2048, rope_base=10000.0, scaling=None, rope_freqs=False, n_rot=None, window=0,
            eps=1e-5, post_norm=1.0, version=3, alignment=32, parts=1)

MODELS = {}


def model(name, **changes):
    unknown = set(changes) - set(BASE)
    assert not unknown and name not in MODELS, (name, unknown)
    MODELS[name] = {**BASE, **changes}


# Each tensor type as the type of every matrix. The 256-wide ones have blocks of 256.
for _kind, _row in blocks.TYPES.items():
    if _row[1] == 256:
        model("llama-" + _kind.lower(), kind=_kind, n_layers=1, n_embd=256, n_ff=256, n_heads=4,
              n_kv_heads=2, head_dim=64)
    else:
        model("llama-" + _kind.lower(), kind=_kind)
model("llama-mixed", n_embd=256, n_ff=256, n_heads=4, n_kv_heads=1, head_dim=64, tied=True,
      kind="Q4_K", embd="Q8_0",
      kinds={"attn_v": "Q6_K", "ffn_down": "Q5_0", "attn_k": "Q4_1", "ffn_up": "BF16"})
# Llama's variations.
model("llama-tied", tied=True, kind="Q4_1", embd="Q8_0", vocab="bpe:smollm", rope_base=100000.0)
model("llama-freqs", rope_freqs=True, kind="F16", vocab="bpe:llama-bpe", rope_base=500000.0)
model("llama-linear", scaling=dict(type="linear", factor=4.0), kind="Q4_0")
model("llama-yarn", scaling=dict(type="yarn", factor=4.0, original=64), kind="Q5_0",
      rope_base=1000.0)
model("llama-partial", n_rot=16, kind="Q5_1")
model("llama-mha", n_heads=6, n_kv_heads=6, head_dim=32, n_embd=192, n_ff=96, kind="Q4_0")
model("llama-one-head", n_heads=1, n_kv_heads=1, head_dim=64, n_embd=64, n_ff=32, kind="Q8_0")
# Heads: as many keys as queries, and groups of 3, 7 and 71 queries to a key.
model("llama-heads5of5", n_heads=5, n_kv_heads=5, n_embd=64, n_ff=64, n_layers=1)
model("llama-heads12of4", n_heads=12, n_kv_heads=4, n_embd=64, n_ff=64, n_layers=1, kind="Q4_0")
model("llama-heads28of4", n_heads=28, n_kv_heads=4, head_dim=16, n_embd=64, n_ff=64, n_layers=1)
model("llama-heads71of1", n_heads=71, n_kv_heads=1, n_embd=64, n_ff=64, n_layers=1)
# Shapes: rows that are no multiple of 16, heads of odd sizes, tiny and large vocabularies.
model("llama-vocab40001", n_embd=32, n_ff=32, n_heads=2, n_kv_heads=1, head_dim=16, tied=True,
      n_layers=1, kind="Q4_0", n_vocab=40001)
model("llama-vocab31", vocab="letters", n_vocab=31, n_embd=64, n_heads=2, n_kv_heads=1,
      kind="Q4_1")
model("llama-vocab17", vocab="letters", n_vocab=17, n_embd=32, n_heads=1, head_dim=32, kind="F32")
model("llama-head8", n_heads=6, n_kv_heads=3, head_dim=8, n_embd=64, kinds={"attn_output": "F16"})
model("llama-head20", n_heads=6, n_kv_heads=2, head_dim=20, kinds={"attn_output": "BF16"})
model("llama-head80", n_heads=2, n_kv_heads=1, head_dim=80, n_embd=288, n_ff=96, kind="Q5_0")
model("llama-head96", n_heads=3, n_kv_heads=3, head_dim=96, n_embd=288, n_ff=96, n_layers=1)
model("llama-head100", n_heads=2, n_kv_heads=1, head_dim=100, n_layers=1,
      kinds={"attn_output": "F16"})
model("llama-deep", n_layers=12, n_embd=32, n_ff=64, n_heads=2, n_kv_heads=1, head_dim=16)
# The file itself.
model("llama-v2", version=2, kind="Q4_0")
model("llama-align64", alignment=64, kind="Q4_1")
model("llama-split", parts=3, kind="Q8_0")
# Qwen.
model("qwen2", arch="qwen2", vocab="bpe:qwen2", n_embd=224, n_heads=7, n_kv_heads=1, n_ff=96,
      n_layers=2, kind="Q5_0", out="Q8_0", rope_base=1000000.0, eps=1e-6)
model("qwen2-head40", arch="qwen2", vocab="bpe:qwen2", n_embd=320, n_heads=8, n_kv_heads=8,
      head_dim=40, n_ff=64, kind="Q4_1", tied=True, eps=1e-6)
model("qwen2-head64", arch="qwen2", vocab="bpe:qwen2", n_embd=128, n_heads=2, n_kv_heads=1,
      head_dim=64, kind="Q4_0", kinds={"ffn_down": "Q8_0"}, eps=1e-6)
model("qwen2-k", arch="qwen2", vocab="bpe:qwen2", n_embd=256, n_heads=4, n_kv_heads=2, head_dim=64,
      n_ff=256, n_layers=1, kind="Q4_K", kinds={"attn_v": "Q6_K", "ffn_down": "Q6_K"}, eps=1e-6)
model("qwen2-f32", arch="qwen2", vocab="bpe:qwen2", n_embd=64, n_heads=2, n_kv_heads=1, n_ff=96,
      kind="F32", eps=1e-6)
model("qwen3", arch="qwen3", vocab="bpe:qwen2", n_embd=96, n_heads=3, n_kv_heads=1, head_dim=128,
      kind="Q8_0", tied=True, rope_base=1000000.0, eps=1e-6)
model("qwen3-f32", arch="qwen3", vocab="bpe:qwen2", n_embd=64, n_heads=2, n_kv_heads=2, head_dim=64,
      kind="F32", eps=1e-6)
# Gemma: windows that matter within a few tokens; layer 6 of 7 is the global one.
model("gemma3", arch="gemma3", vocab="gemma", n_layers=7, n_embd=64, n_ff=96, n_heads=4,
      n_kv_heads=1, head_dim=32, kind="Q8_0", tied=True, window=16, rope_base=1000000.0, eps=1e-6)
model("gemma3-window8", arch="gemma3", vocab="gemma", n_layers=8, n_embd=32, n_ff=64, n_heads=2,
      n_kv_heads=2, head_dim=16, kind="F16", tied=True, window=8, rope_base=1000000.0, eps=1e-6,
      scaling=dict(type="linear", factor=8.0))
model("gemma3-f32", arch="gemma3", vocab="gemma", n_layers=7, n_embd=32, n_ff=64, n_heads=2,
      n_kv_heads=1, head_dim=32, kind="F32", tied=True, window=8, rope_base=1000000.0, eps=1e-6)
# What the layers add passes what a half-precision float can hold.
model("gemma3-large", arch="gemma3", vocab="gemma", n_layers=7, n_embd=64, n_ff=64, n_heads=2,
      n_kv_heads=1, head_dim=32, kind="Q8_0", tied=True, window=16, rope_base=1000000.0, eps=1e-6,
      post_norm=1e5)
model("llama-yarn-f32", scaling=dict(type="yarn", factor=4.0, original=64), kind="F32",
      rope_base=1000.0)
model("gemma3-head256", arch="gemma3", vocab="gemma", n_layers=7, n_embd=64, n_ff=64, n_heads=1,
      n_kv_heads=1, head_dim=256, kind="Q5_0", embd="Q8_0", tied=True, window=32,
      rope_base=1000000.0, eps=1e-6)
model("gemma3-window300", arch="gemma3", vocab="gemma", n_layers=7, n_embd=32, n_ff=64, n_heads=2,
      n_kv_heads=1, head_dim=32, kind="Q4_0", embd="Q8_0", tied=True, window=300,
      rope_base=1000000.0, eps=1e-6)


class Maker:
    def __init__(self, name):
        self.name, self.p = name, MODELS[name]
        self.w = g.Writer(self.p["arch"], self.p["version"], self.p["alignment"])

    def rng(self, tensor):
        return np.random.RandomState(zlib.crc32(f"{self.name}/{tensor}".encode()))

    def matrix(self, tensor, n_rows, n_cols, kind, deviation):
        data = blocks.random_rows(self.rng(tensor), kind, n_rows, n_cols, deviation)
        self.w.tensor(tensor + ".weight", [n_cols, n_rows], blocks.TYPES[kind][0], data)

    def linear(self, layer, role, n_rows, n_cols):
        kind = self.p["kinds"].get(role, self.p["kind"])
        self.matrix(f"blk.{layer}.{role}", n_rows, n_cols, kind, n_cols ** -0.5)

    def vector(self, tensor, n, centre, deviation):
        x = centre + blocks.normals(self.rng(tensor), n) * deviation
        self.w.tensor(tensor, [n], 0, x.astype("<f4").tobytes())

    def norm(self, tensor, n, size=1.0):
        self.vector(tensor + ".weight", n, size, 0.1 * size)

    def keys(self):
        p, w = self.p, self.w
        w.key("general.name", g.STRING, self.name)
        w.key(".context_length", g.U32, p["n_ctx"])
        w.key(".embedding_length", g.U32, p["n_embd"])
        w.key(".block_count", g.U32, p["n_layers"])
        w.key(".feed_forward_length", g.U32, p["n_ff"])
        w.key(".attention.head_count", g.U32, p["n_heads"])
        w.key(".attention.head_count_kv", g.U32, p["n_kv_heads"])
        w.key(".attention.layer_norm_rms_epsilon", g.F32, p["eps"])
        w.key(".rope.freq_base", g.F32, p["rope_base"])
        if p["head_dim"] * p["n_heads"] != p["n_embd"]:
            w.key(".attention.key_length", g.U32, p["head_dim"])
            w.key(".attention.value_length", g.U32, p["head_dim"])
        if p["n_rot"] or p["arch"] == "llama":
            w.key(".rope.dimension_count", g.U32, p["n_rot"] or p["head_dim"])
        if p["window"]:
            w.key(".attention.sliding_window", g.U32, p["window"])
        if p["scaling"]:
            w.key(".rope.scaling.type", g.STRING, p["scaling"]["type"])
            w.key(".rope.scaling.factor", g.F32, p["scaling"]["factor"])
            if "original" in p["scaling"]:
                w.key(".rope.scaling.original_context_length", g.U32, p["scaling"]["original"])

    def vocabulary(self):
        kind, _, pre = self.p["vocab"].partition(":")
        if kind == "bpe":
            return vocab.bpe(self.w, pre)
        return getattr(vocab, kind)(self.w, self.p["n_vocab"])

    def layer(self, i):
        p = self.p
        q, kv = p["n_heads"] * p["head_dim"], p["n_kv_heads"] * p["head_dim"]
        b = f"blk.{i}."
        self.norm(b + "attn_norm", p["n_embd"])
        for role, n in (("attn_q", q), ("attn_k", kv), ("attn_v", kv)):
            self.linear(i, role, n, p["n_embd"])
            if p["arch"] == "qwen2":
                self.vector(b + role + ".bias", n, 0.0, 0.3)
        self.linear(i, "attn_output", p["n_embd"], q)
        if p["arch"] in ("qwen3", "gemma3"):
            self.norm(b + "attn_q_norm", p["head_dim"])
            self.norm(b + "attn_k_norm", p["head_dim"])
        if p["arch"] == "gemma3":
            self.norm(b + "post_attention_norm", p["n_embd"], p["post_norm"])
            self.norm(b + "post_ffw_norm", p["n_embd"], p["post_norm"])
        self.norm(b + "ffn_norm", p["n_embd"])
        self.linear(i, "ffn_gate", p["n_ff"], p["n_embd"])
        self.linear(i, "ffn_up", p["n_ff"], p["n_embd"])
        self.linear(i, "ffn_down", p["n_embd"], p["n_ff"])

    def make(self):
        p = self.p
        self.keys()
        n_vocab = self.vocabulary()
        size = 2.5 * p["n_embd"] ** -0.5
        self.matrix("token_embd", n_vocab, p["n_embd"], p["embd"] or p["kind"], size)
        for i in range(p["n_layers"]):
            self.layer(i)
        self.norm("output_norm", p["n_embd"])
        if not p["tied"]:
            self.matrix("output", n_vocab, p["n_embd"], p["out"] or p["kind"], size)
        if p["rope_freqs"]:
            x = 1.0 + np.arange(p["head_dim"] // 2) % 5 * 1.75
            self.w.tensor("rope_freqs.weight", [p["head_dim"] // 2], 0, x.astype("<f4").tobytes())
        return self.w


def files(name):
    n = MODELS[name]["parts"]
    if n == 1:
        return [name + ".gguf"]
    return [f"{name}-{i + 1:05d}-of-{n:05d}.gguf" for i in range(n)]


def list_models(names=None):
    """Names with their properties; `files` are relative to OUTDIR, the first is the one to open."""
    return {name: {**MODELS[name], "files": files(name)} for name in names or MODELS}


def write(folder, name):
    """Writes one model into a folder; returns its files."""
    paths = [os.path.join(folder, f) for f in files(name)]
    w = Maker(name).make()
    if len(paths) == 1:
        w.save(paths[0])
    else:
        w.save_split(paths)
    return files(name)


def n_vocab(name):
    """Tokens of a model's vocabulary."""
    m = Maker(name)
    return m.vocabulary()


def main(args):
    if not args or args[0] in ("-h", "--help"):
        sys.exit(__doc__)
    names = args[1:] or list(MODELS)
    unknown = [n for n in names if n not in MODELS]
    if unknown:
        sys.exit(f"make_models.py: no model {unknown[0]}; there are {' '.join(MODELS)}")
    if args[0] != "--list":
        os.makedirs(args[0], exist_ok=True)
        for name in names:
            write(args[0], name)
    json.dump(list_models(names), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main(sys.argv[1:])
