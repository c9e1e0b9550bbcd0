"""Small tokenizers: SPM with byte tokens, byte-level BPE with merges, and bare lists of letters."""
import gguf_write as g

CORPUS = """the keeper of the light wrote one line a day in her log: wind from the west, fog until
noon, two ships. On the second she wrote of the sea, and of the birds that came in spring; then the
long winter, when there was nothing to write about but the wind and the stars over the water.
def add(a, b): return a + b  # numbers 1 2 3 10 20 30 and the names of the ships
Der Leuchtturm steht im Norden. Le phare est dans le nord. The lighthouse is in the north."""

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


def byte_letters():
    """GPT-2's printable stand-ins for the 256 bytes."""
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    out, extra = {}, 256
    for b in range(256):
        if b in keep:
            out[b] = chr(b)
        else:
            out[b] = chr(extra)
            extra += 1
    return out


def train(words, n_merges):
    """Pairs in the order of a plain BPE training: most frequent first, ties by text."""
    words = [list(w) for w in words]
    merges = []
    for _ in range(n_merges):
        counts = {}
        for w in words:
            for pair in zip(w, w[1:]):
                counts[pair] = counts.get(pair, 0) + 1
        if not counts:
            break
        best = max(counts, key=lambda p: (counts[p], p))
        if counts[best] < 2:
            break
        merges.append(best)
        for w in words:
            i = 0
            while i + 1 < len(w):
                if (w[i], w[i + 1]) == best:
                    w[i:i + 2] = ["".join(best)]
                i += 1
    return merges


def spm(w, n_vocab=None):
    """<unk> <s> </s>, 256 bytes, then pieces with scores that fall with their rank."""
    words = ["\u2581" + x for x in CORPUS.split()]
    letters = sorted({c for x in words for c in x})
    pieces = letters + ["".join(p) for p in train(words, 200)]
    pieces = list(dict.fromkeys(pieces))
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)] + pieces
    if n_vocab is None:
        n_vocab = len(tokens)
    tokens = (tokens + [f"t{i}" for i in range(len(tokens), n_vocab)])[:n_vocab]
    kinds = ([UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * n_vocab)[:n_vocab]
    # Letters are worth least, so that merges are preferred in the order of their training.
    first = 259 + len(letters)
    scores = [0.0] * 259 + [-1000.0] * len(letters)
    scores += [-float(i - first) for i in range(first, n_vocab)]
    w.key("tokenizer.ggml.model", g.STRING, "llama")
    w.key("tokenizer.ggml.pre", g.STRING, "default")
    w.array("tokenizer.ggml.tokens", g.STRING, tokens)
    w.array("tokenizer.ggml.scores", g.F32, scores[:n_vocab])
    w.array("tokenizer.ggml.token_type", g.I32, kinds)
    w.key("tokenizer.ggml.bos_token_id", g.U32, 1)
    w.key("tokenizer.ggml.eos_token_id", g.U32, 2)
    w.key("tokenizer.ggml.unknown_token_id", g.U32, 0)
    w.key("tokenizer.ggml.add_bos_token", g.BOOL, True)
    return n_vocab


def gemma(w, n_vocab=None):
    n_vocab = spm(w, n_vocab)
    w.key("tokenizer.ggml.add_space_prefix", g.BOOL, False)
    return n_vocab


def letters(w, n_vocab):
    """SPM without byte tokens: fewer than 32 tokens in all."""
    tokens = (["<unk>", "<s>", "</s>", "\u2581"] + list("etaoinshrdlucmfwypvbgkqjxz.")
              + ["th"])[:n_vocab]
    w.key("tokenizer.ggml.model", g.STRING, "llama")
    w.array("tokenizer.ggml.tokens", g.STRING, tokens)
    w.array("tokenizer.ggml.scores", g.F32, [-float(i) for i in range(len(tokens))])
    w.array("tokenizer.ggml.token_type", g.I32, [2, 3, 3] + [1] * (len(tokens) - 3))
    w.key("tokenizer.ggml.bos_token_id", g.U32, 1)
    w.key("tokenizer.ggml.eos_token_id", g.U32, 2)
    w.key("tokenizer.ggml.unknown_token_id", g.U32, 0)
    return len(tokens)


def bpe(w, pre):
    """256 bytes, merges over them, three control tokens at the end."""
    table = byte_letters()
    words = ["".join(table[b] for b in (" " + x).encode()) for x in CORPUS.split()]
    merges = train(words, 240)
    tokens = [table[b] for b in range(256)]
    tokens += list(dict.fromkeys("".join(p) for p in merges))
    eos = len(tokens)
    tokens += ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    w.key("tokenizer.ggml.model", g.STRING, "gpt2")
    w.key("tokenizer.ggml.pre", g.STRING, pre)
    w.array("tokenizer.ggml.tokens", g.STRING, tokens)
    w.array("tokenizer.ggml.token_type", g.I32, [NORMAL] * eos + [CONTROL] * 3)
    w.array("tokenizer.ggml.merges", g.STRING, [" ".join(p) for p in merges])
    w.key("tokenizer.ggml.bos_token_id", g.U32, eos)
    w.key("tokenizer.ggml.eos_token_id", g.U32, eos + 2)
    w.key("tokenizer.ggml.padding_token_id", g.U32, eos)
    w.key("tokenizer.ggml.add_bos_token", g.BOOL, False)
    return len(tokens)
