"""Embeddings of tern serve against a forward pass in float64, and against themselves.

    check_embeddings.py TERN TINY
"""
import base64
import pathlib
import struct
import sys
import tempfile
import threading

import numpy as np

from harness import run, tiny_model
from server import Server

for beside in ("oracle", "models"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / beside))
import gguf_write  # noqa: E402
import make_models  # noqa: E402
from reference import Reference  # noqa: E402

tern, tiny = sys.argv[1], pathlib.Path(sys.argv[2])
MODEL = tiny_model(tiny, "llama-q8_0.gguf")
TEXTS = ["the sea was", "a", "the light is old and the keeper of it sleeps " * 12]


def vectors(s, inputs, **more):
    answer = s.good("/v1/embeddings", {"input": inputs, "model": "any", **more})
    assert answer["object"] == "list"
    assert [d["index"] for d in answer["data"]] == list(range(len(answer["data"])))
    assert all(d["object"] == "embedding" for d in answer["data"])
    return [d["embedding"] for d in answer["data"]]


def ids_of(s, text):
    return s.good("/tokenize", {"content": text, "add_special": True,
                                "parse_special": False})["tokens"]


def are_what_the_papers_say(_):
    for name in ("llama-f32", "qwen2-k", "qwen3", "gemma3"):
        model = tiny / f"{name}.gguf"
        if not model.exists():
            model = tiny / "llama-q8_0.gguf"
        reference = Reference(str(model))
        for pooling in ("mean", "last"):
            s = Server(tern, model, "-c", 256, "--exact", "--pooling", pooling, "--chunk", 48)
            for text in TEXTS[:2] + [TEXTS[2][:200]]:
                hidden, _ = reference.hidden([ids_of(s, text)])
                want = hidden.mean(0) if pooling == "mean" else hidden[-1]
                want = want / np.sqrt((want * want).sum())
                got = np.array(vectors(s, text)[0])
                assert abs((got * got).sum() - 1) < 1e-5
                assert np.abs(got - want).max() < 2e-4, (name, pooling, np.abs(got - want).max())
            assert s.stop() == 0


def are_the_same_alone_and_among_others(s):
    long = [f"{i} {TEXTS[2]}" for i in range(6)]
    alone = [vectors(s, t)[0] for t in TEXTS + long]
    assert vectors(s, TEXTS + long) == alone
    together = {}

    def ask(i):
        together[i] = vectors(s, (TEXTS + long)[i])[0]
    threads = [threading.Thread(target=ask, args=(i,)) for i in range(9)]
    threads.append(threading.Thread(target=s.good, args=(
        "/v1/completions", {"prompt": "a", "max_tokens": 60, "ignore_eos": True})))
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert [together[i] for i in range(9)] == alone
    for args, equal in ((["--chunk", 5, "--pooling", "mean"], True), (["--pooling", "last"], False),
                        ([], False)):
        other = Server(tern, MODEL, "-c", 512, *args)
        assert ([vectors(other, t)[0] for t in TEXTS + long] == alone) == equal, args
        assert other.stop() == 0


def come_as_texts_ids_floats_and_base64(s):
    plain = vectors(s, TEXTS[0])
    assert vectors(s, ids_of(s, TEXTS[0])) == plain
    assert vectors(s, [ids_of(s, t) for t in TEXTS]) == vectors(s, TEXTS)
    coded = vectors(s, TEXTS[0], encoding_format="base64")[0]
    bits = struct.unpack(f"<{len(plain[0])}f", base64.b64decode(coded, validate=True))
    assert [np.float32(x) for x in plain[0]] == [np.float32(x) for x in bits]
    assert vectors(s, TEXTS[0], encoding_format=None) == plain
    usage = s.good("/v1/embeddings", {"input": TEXTS[:2]})["usage"]
    n = sum(len(ids_of(s, t)) for t in TEXTS[:2])
    assert usage["prompt_tokens"] == usage["total_tokens"] == n


def are_pooled_as_the_file_says(s):
    mean = vectors(s, TEXTS[0])
    for kind in (0, 1, 2, 3):
        w = make_models.Maker("llama-q8_0").make()
        w.key(".pooling_type", gguf_write.U32, kind)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "pooled.gguf"
            w.save(str(path))
            other = Server(tern, path, "-c", 512)
            if kind == 2:
                status, _, answer = other.post("/v1/embeddings", {"input": "a"})
                assert status == 400 and "--pooling" in answer["error"]["message"]
            else:
                assert (vectors(other, TEXTS[0]) == mean) == (kind == 1), kind
            assert other.stop() == 0


def are_cut_to_dimensions(s):
    whole = np.array(vectors(s, TEXTS[2])[0])
    for n in (1, 2, 31, len(whole)):
        got = np.array(vectors(s, TEXTS[2], dimensions=n)[0])
        want = whole[:n] / np.sqrt((whole[:n] ** 2).sum())
        assert len(got) == n and np.abs(got - want).max() < 1e-6
        for length in (n,):
            coded = vectors(s, TEXTS[2], dimensions=length, encoding_format="base64")[0]
            assert len(base64.b64decode(coded, validate=True)) == 4 * length


def refuse_what_they_are_not(s):
    many = ["a"] * 1025
    for body in ({}, {"input": None}, {"input": []}, {"input": [[]]}, {"input": ""},
                 {"input": ["a", ""]}, {"input": 5}, {"input": {}}, {"input": [{}]},
                 {"input": [1, "a"]}, {"input": [-1]}, {"input": [2**31]}, {"input": [1.5]},
                 {"input": many}, {"input": "a", "dimensions": 0},
                 {"input": "a", "dimensions": 10**6}, {"input": "a", "dimensions": "x"},
                 {"input": "a", "encoding_format": "hex"}, {"input": "a", "encoding_format": 1},
                 {"input": "word " * 3000}):
        status, _, answer = s.post("/v1/embeddings", body)
        assert status == 400, (body, status, answer)
        error = answer["error"]
        assert error["param"] in ("input", "dimensions", "encoding_format"), (body, error)
    assert s.post("/v1/embeddings", {"input": "word " * 3000})[2]["error"]["code"] == \
        "context_length_exceeded"
    assert len(vectors(s, ["a"] * 1024)) == 1024
    assert s.ask("GET", "/v1/embeddings")[0] == 405
    try:
        Server(tern, MODEL, "--pooling", "cls")
        raise AssertionError("--pooling cls was taken")
    except RuntimeError as e:
        assert "--pooling" in str(e)


TESTS = [are_what_the_papers_say, are_the_same_alone_and_among_others,
         come_as_texts_ids_floats_and_base64, are_pooled_as_the_file_says,
         are_cut_to_dimensions, refuse_what_they_are_not]
server = Server(tern, MODEL, "-c", 512, "--pooling", "mean")
sys.exit(run(TESTS, server, sys.argv[3:]) > 0)
