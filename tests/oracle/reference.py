#!/usr/bin/env python3
"""A model's forward pass in float64, from its dequantised weights, written from the papers.

    reference.py MODEL --ids 1,2,3 [--top K]       log-probabilities after each token
    reference.py MODEL --perplexity IDS.json [-c 512]

It shares nothing with Tern but the file format, keeps no cache, and quantises no activation:
what `--exact` is held against. Architectures: llama, qwen2, qwen3, gemma3.
"""
import argparse
import json
import math
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gguf_read import Model  # noqa: E402


def rms_norm(x, weight, eps):
    return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + eps) * weight


def silu(x):
    return x / (1 + np.exp(-x))


def gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


class Rope:
    """Rotation of the first n_rot dimensions; pairs (2i, 2i+1), or (i, i + n_rot/2) for neox."""

    def __init__(self, model, n_rot, base, neox, scaled=True):
        self.n_rot, self.neox, self.mscale = n_rot, neox, 1.0
        i = np.arange(n_rot // 2)
        self.freq = base ** (-2.0 * i / n_rot)
        if model.has("rope_freqs.weight"):
            self.freq = self.freq / model.array("rope_freqs.weight").astype(np.float64)
        kind = model.get(".rope.scaling.type", "linear")
        factor = float(model.get(".rope.scaling.factor", model.get(".rope.scale_linear", 0.0)))
        if factor == 0.0 or not scaled or kind == "none":
            return
        if kind == "linear":
            self.freq = self.freq / factor
        elif kind == "yarn":
            self.yarn(model, i, base, factor)
        else:
            raise ValueError(f"rope scaling {kind} is not written here")

    def yarn(self, model, i, base, factor):
        original = model.get(".rope.scaling.original_context_length", model.get(".context_length"))
        fast = model.get(".rope.scaling.yarn_beta_fast", 32.0)
        slow = model.get(".rope.scaling.yarn_beta_slow", 1.0)

        def corr(beta):
            return self.n_rot * math.log(original / (beta * 2 * math.pi)) / (2 * math.log(base))
        low = max(0.0, math.floor(corr(fast)))
        high = min(self.n_rot - 1.0, math.ceil(corr(slow)))
        mix = 1 - np.clip((i - low) / max(0.001, high - low), 0, 1)
        self.freq = self.freq / factor * (1 - mix) + self.freq * mix
        self.mscale = model.get(".rope.scaling.attn_factor", 1.0) * (1 + 0.1 * math.log(factor))

    def __call__(self, x):
        """x: [tokens, heads, head_dim], the tokens at positions 0, 1, ..."""
        n, angle = self.n_rot, np.arange(len(x))[:, None] * self.freq
        cos, sin = (f(angle)[:, None, :] * self.mscale for f in (np.cos, np.sin))
        halves = (slice(0, n // 2), slice(n // 2, n))
        a, b = halves if self.neox else (slice(0, n, 2), slice(1, n, 2))
        out = x.copy()
        out[..., a] = x[..., a] * cos - x[..., b] * sin
        out[..., b] = x[..., a] * sin + x[..., b] * cos
        return out


class Reference:
    def __init__(self, path, real=np.float64):
        self.m, self.real = Model(path), real
        self.largest = 0.0  # value of the residual stream so far
        m = self.m
        self.arch = m.architecture
        if self.arch not in ("llama", "qwen2", "qwen3", "gemma3"):
            raise ValueError(f"architecture {self.arch} is not written here")
        self.n_layers, self.n_embd = m.get(".block_count"), m.get(".embedding_length")
        self.n_heads = m.get(".attention.head_count")
        self.n_kv = m.get(".attention.head_count_kv", self.n_heads)
        self.head_dim = m.get(".attention.key_length", self.n_embd // self.n_heads)
        self.eps = m.get(".attention.layer_norm_rms_epsilon")
        base = m.get(".rope.freq_base", 10000.0)
        n_rot = m.get(".rope.dimension_count", self.head_dim)
        gemma = self.arch == "gemma3"
        self.window = m.get(".attention.sliding_window", 0) if gemma else 0
        self.rope = Rope(m, n_rot, base, self.arch != "llama")
        self.local_rope = Rope(m, n_rot, m.get(".rope.freq_base_swa", 10000.0), True, False)

    def w(self, name):
        return self.m.array(name).astype(self.real)

    def linear(self, x, name):
        y = x @ self.w(name + ".weight").T
        return y + self.w(name + ".bias") if self.m.has(name + ".bias") else y

    def norm(self, x, name):
        return rms_norm(x, self.w(name + ".weight"), self.eps)

    def attend(self, q, k, v, window):
        """One sequence: q [n, heads, dim], k and v [n, kv heads, dim]."""
        n, group = len(q), self.n_heads // self.n_kv
        i = np.arange(n)
        hidden = i[None, :] > i[:, None]
        if window:
            hidden |= i[None, :] <= i[:, None] - window
        out = np.empty_like(q)
        for h in range(self.n_heads):
            s = q[:, h] @ k[:, h // group].T / math.sqrt(self.head_dim)
            s[hidden] = -np.inf
            p = np.exp(s - s.max(1, keepdims=True))
            out[:, h] = p / p.sum(1, keepdims=True) @ v[:, h // group]
        return out.reshape(n, -1)

    def layer(self, x, i, bounds):
        """x: the rows of all sequences, one after the other; bounds: where each begins and ends."""
        b = f"blk.{i}."
        local = self.window > 0 and (i + 1) % 6 != 0
        rope = self.local_rope if local else self.rope
        a = self.norm(x, b + "attn_norm")
        q, k, v = (self.linear(a, b + name).reshape(len(x), -1, self.head_dim)
                   for name in ("attn_q", "attn_k", "attn_v"))
        if self.m.has(b + "attn_q_norm.weight"):
            q, k = self.norm(q, b + "attn_q_norm"), self.norm(k, b + "attn_k_norm")
        rows = [self.attend(rope(q[s:e]), rope(k[s:e]), v[s:e], self.window if local else 0)
                for s, e in bounds]
        a = self.linear(np.concatenate(rows), b + "attn_output")
        if self.arch == "gemma3":
            a = self.norm(a, b + "post_attention_norm")
        x = x + a
        f = self.norm(x, b + "ffn_norm")
        act = gelu if self.arch == "gemma3" else silu
        f = act(self.linear(f, b + "ffn_gate")) * self.linear(f, b + "ffn_up")
        f = self.linear(f, b + "ffn_down")
        if self.arch == "gemma3":
            f = self.norm(f, b + "post_ffw_norm")
        return x + f

    def hidden(self, sequences):
        """The normalised last hidden rows of all sequences, stacked."""
        ids = np.concatenate([np.asarray(s, np.int64) for s in sequences])
        ends = np.cumsum([len(s) for s in sequences])
        bounds = list(zip([0, *ends[:-1]], ends))
        x = self.m.array("token_embd.weight", ids).astype(self.real)
        if self.arch == "gemma3":
            x = x * math.sqrt(self.n_embd)
        for i in range(self.n_layers):
            x = self.layer(x, i, bounds)
            self.largest = max(self.largest, np.abs(x).max())
        return self.norm(x, "output_norm"), bounds

    def log_probs(self, hidden):
        """[rows, vocabulary] log-probabilities of the next token."""
        name = "output.weight" if self.m.has("output.weight") else "token_embd.weight"
        n_vocab = self.m.tensors[name][1][1]
        logits = np.empty((len(hidden), n_vocab), self.real)
        for at in range(0, n_vocab, 16384):
            part = slice(at, min(n_vocab, at + 16384))
            logits[:, part] = hidden @ self.m.array(name, part).astype(self.real).T
        top = logits.max(1, keepdims=True)
        return logits - top - np.log(np.exp(logits - top).sum(1, keepdims=True))

    def run(self, ids):
        """Log-probabilities after each token of one sequence: [n, vocabulary]."""
        return self.log_probs(self.hidden([ids])[0])

    def perplexity(self, ids, n_ctx, batch=4):
        """llama.cpp's method: windows of n_ctx, the first token replaced by BOS where the model
        wants one, the second half of each window scored."""
        spm = self.m.get("tokenizer.ggml.model") == "llama"
        add_bos = self.m.get("tokenizer.ggml.add_bos_token", spm)
        bos = self.m.get("tokenizer.ggml.bos_token_id") if add_bos else None
        windows = [list(ids[i * n_ctx:(i + 1) * n_ctx]) for i in range(len(ids) // n_ctx)]
        nll, first = [], n_ctx // 2
        for at in range(0, len(windows), batch):
            group = [list(w) for w in windows[at:at + batch]]
            for w in group:
                w[0] = w[0] if bos is None else bos
            x, bounds = self.hidden(group)
            for (s, _), w in zip(bounds, group):
                lp = self.log_probs(x[s + first:s + n_ctx - 1])
                nll.extend(-lp[np.arange(len(lp)), w[first + 1:]])
        return math.exp(np.mean(nll)), len(nll)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    a.add_argument("model")
    a.add_argument("--ids")
    a.add_argument("--top", type=int, default=5)
    a.add_argument("--perplexity", metavar="IDS.json")
    a.add_argument("-c", type=int, default=512)
    a.add_argument("--float32", action="store_true")
    o = a.parse_args()
    r = Reference(o.model, np.float32 if o.float32 else np.float64)
    if o.perplexity:
        with open(o.perplexity) as f:
            ids = json.load(f)
        ppl, n = r.perplexity(ids, o.c)
        print(json.dumps({"perplexity": ppl, "tokens": n}))
        return
    lp = r.run([int(x) for x in o.ids.split(",")])
    for row in lp:
        best = np.argsort(-row, kind="stable")[:o.top]
        print(" ".join(f"{i}:{row[i]:.5f}" for i in best))


if __name__ == "__main__":
    main()
