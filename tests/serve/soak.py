"""Thousands of mixed requests against one tern serve, and nothing of them stays.

    soak.py TERN TINY [REQUESTS]

Short ones, long ones, streams, cancelled at any time, malformed, too long, held to grammars and
schemas, with tools, from eight clients at a time. After the first hundred of each client's turns,
anonymous memory is the same to the page and descriptors to the one; every request that was not
cancelled had its answer. TERN_SOAK is the number of requests, where the caller gives none.
"""
import http.client
import json
import os
import pathlib
import random
import socket
import sys
import threading
import time

from server import Server

CLIENTS, CONTEXT, SEQUENCES = 8, 4096, 4
tern, tiny = sys.argv[1], pathlib.Path(sys.argv[2])
n_requests = int(sys.argv[3] if len(sys.argv) > 3 else os.environ.get("TERN_SOAK", 800))
model = tiny / "llama-q8_0.gguf"
if not model.exists():
    print("skipped: no small models (they need numpy)")
    sys.exit(77)
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}},
          "required": ["a", "b"], "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 8}},
    "required": ["city"], "additionalProperties": False}}}
TEXT = "/v1/completions"
CHAT = "/v1/chat/completions"


def words(rng, n):
    return " ".join(rng.choice(["sea", "light", "the", "wind", "a", "ships"]) for _ in range(n))


def text(rng, n=8, **more):
    return {"prompt": words(rng, n), "max_tokens": 8, "seed": rng.randrange(1000),
            "ignore_eos": True, **more}


def chat(rng, **more):
    return {"messages": [{"role": "user", "content": words(rng, 6)}], "max_tokens": 8,
            "seed": rng.randrange(1000), **more}


def send(s, path, body, stream=False):
    c = s.socket(60)
    data = json.dumps({**body, "stream": stream}).encode()
    c.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
              b"Content-Length: %d\r\n\r\n" % (path.encode(), len(data)) + data)
    return c


def leave(s, rng):
    """Begun, and left: before anything, after an event, half closed, or with a reset."""
    c = send(s, TEXT, text(rng, rng.choice([4, 300]), max_tokens=2000), True)
    how = rng.randrange(4)
    if how:
        c.recv(1000)
    if how == 2:
        c.shutdown(socket.SHUT_WR)
        c.recv(1000)
    if how == 3:
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    c.close()


def pipelined(s, rng):
    one = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    assert s.raw(one * 3 + last).count(b"HTTP/1.1 200 OK") == 4


def is_status(*expected):
    def check(got):
        assert got[0] in expected, got
    return check


def is_stream(s, rng):
    events = s.events(TEXT, text(rng, stream_options={"include_usage": True}))
    assert events[-1]["usage"]["completion_tokens"] == 8


def is_schema(s, rng):
    got = s.good(TEXT, text(rng, max_tokens=200, json_schema=SCHEMA))
    assert set(json.loads(got["choices"][0]["text"])) == {"a", "b"}


def is_grammar(s, rng):
    got = s.good(TEXT, text(rng, grammar='root ::= "yes" | "no"'))
    assert got["choices"][0]["text"] in ("yes", "no")


def is_call(s, rng):
    got = s.good(CHAT, chat(rng, tools=[TOOL], tool_choice="required", max_tokens=200,
                            parallel_tool_calls=False))
    assert got["choices"][0]["finish_reason"] == "tool_calls"


def posts(path, body, *expected):
    def ask(s, rng):
        is_status(*expected)(s.post(path, body(rng) if callable(body) else body))
    return ask


def raw(data, expected):
    def ask(s, rng):
        got = s.raw(data)
        assert got.startswith(b"HTTP/1.1 " + expected), got[:100]
    return ask


HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
KINDS = [
    posts(TEXT, text, 200), posts(TEXT, lambda r: text(r, 900), 200), is_stream, leave, leave,
    posts(CHAT, chat, 200), posts(CHAT, lambda r: chat(r, n=3, logprobs=True), 200),
    posts(TEXT, lambda r: text(r, n=4, logprobs=5, echo=True), 200),
    is_grammar, is_schema, is_call, pipelined,
    posts(TEXT, lambda r: text(r, 9000), 400), posts(TEXT, b"{", 400),
    posts(TEXT, b'{"prompt": "\xff"}', 400), posts(TEXT, b"[" * 100000, 400),
    posts(TEXT, lambda r: text(r, grammar="root ::= ("), 400),
    posts(TEXT, lambda r: text(r, max_tokens="x"), 400),
    posts(CHAT, lambda r: chat(r, tools=[TOOL], tool_choice={"type": "x"}), 400),
    posts("/tokenize", lambda r: {"content": words(r, 500)}, 200),
    posts("/v1/responses", lambda r: {"input": words(r, 5), "max_output_tokens": 8}, 200),
    posts("/v1/embeddings", lambda r: {"input": [words(r, 5), words(r, 60)]}, 200),
    posts("/nowhere", {}, 404), raw(HEAD + b"Content-Length: 2000000000\r\n\r\n", b"413"),
    raw(HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}", b"400"),
    raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", b"400"),
    raw(HEAD + b"X: " + b"a" * 20000 + b"\r\n\r\n", b"431"),
]
wrong = []


def client(s, k, n):
    rng = random.Random(k)
    for i in range(n):
        kind = KINDS[i % len(KINDS)] if i < len(KINDS) else rng.choice(KINDS)
        try:
            kind(s, rng)
        except (AssertionError, OSError, ValueError, http.client.HTTPException) as e:
            wrong.append(f"client {k}, request {i}: {type(e).__name__} {str(e)[:300]}")


def ask(s, n):
    threads = [threading.Thread(target=client, args=(s, k, n)) for k in range(CLIENTS)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    s.wait_idle()
    time.sleep(0.2)
    return s.anonymous_kib(), s.descriptors()


def use_all_blocks(s):
    """Pages of the cache are there from their first use on: more prompts than it has room for."""
    rng, room = random.Random(0), CONTEXT * SEQUENCES
    while room > 0:
        room -= s.good(TEXT, text(rng, 900))["usage"]["prompt_tokens"]


def main():
    s = Server(tern, model, "-c", CONTEXT, "-np", SEQUENCES, "--chat-template", "chatml")
    use_all_blocks(s)
    first = ask(s, max(len(KINDS), 100 // CLIENTS))
    begun, done = time.monotonic(), CLIENTS * max(len(KINDS), 100 // CLIENTS)
    lines = [f"after {done} requests: {first[0]} KiB of anonymous memory, {first[1]} descriptors"]
    left = max(n_requests - done, CLIENTS)
    for _ in range(4):
        last = ask(s, left // 4 // CLIENTS)
        done += left // 4 // CLIENTS * CLIENTS
        lines.append(f"after {done}: {last[0]} KiB, {last[1]} descriptors, "
                     f"{time.monotonic() - begun:.1f} s")
    print("\n".join(lines))
    if last != first:
        wrong.append(f"it keeps something: {first} became {last}")
    if s.ask("GET", "/health")[0] != 200 or s.stop() != 0:
        wrong.append("it does not end as it should")
    print("\n".join(wrong[:20]) or "every request had its answer")
    sys.exit(bool(wrong))


main()
