"""A tern serve that is used in ways that nobody means well with, and what must hold then.

    check_abuse.py TERN TINY
"""
import json
import os
import pathlib
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time

from harness import run, tiny_model
from server import Server

tern, tiny = sys.argv[1], pathlib.Path(sys.argv[2])
MODEL = tiny_model(tiny, "llama-q8_0.gguf")
COMPLETIONS, CHATS = "/v1/completions", "/v1/chat/completions"
LONG = {"prompt": "the sea", "max_tokens": 29000, "ignore_eos": True, "stream": True}
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def begin_and_read(s, body):
    """A stream that runs, since somebody reads it, until its socket is closed."""
    c = s.begin(COMPLETIONS, body)
    assert c.recv(100).startswith(b"HTTP/1.1 200")

    def read():
        try:
            while c.recv(65536):
                pass
        except OSError:
            pass
    threading.Thread(target=read, daemon=True).start()
    return c


def begin_deaf(s, path, body):
    """A request of somebody who takes hardly anything of what comes."""
    c = socket.socket()
    c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    c.settimeout(20)
    c.connect(("127.0.0.1", s.port))
    text = json.dumps(body).encode()
    c.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
              b"Content-Length: %d\r\n\r\n" % (path.encode(), len(text)) + text)
    return c


def ticks(s):
    fields = open(f"/proc/{s.process.pid}/stat").read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def limit_descriptors(s, n):
    hard = resource.prlimit(s.process.pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(s.process.pid, resource.RLIMIT_NOFILE, (n, hard))


def gives_places_in_the_queue_to_those_who_are_there(_):
    """Clients that left hold none, also behind one that waits."""
    s = Server(tern, tiny / "llama-deep.gguf", "-c", 30000, "-np", 1, "--queue", 4)
    runs, waits = begin_and_read(s, LONG), s.begin(COMPLETIONS, LONG)
    for _ in range(8):
        time.sleep(0.02)
        c = s.begin(COMPLETIONS, LONG)
        time.sleep(0.02)
        c.close()
    new = s.begin(COMPLETIONS, LONG)
    new.settimeout(0.5)
    try:
        got = new.recv(100)
        assert False, got
    except TimeoutError:
        pass
    assert s.metric("sequences_running") == 1
    runs.close()
    assert waits.recv(100).startswith(b"HTTP/1.1 200")
    waits.close()
    new.settimeout(20)
    assert new.recv(100).startswith(b"HTTP/1.1 200")
    new.close()
    assert s.stop() == 0


def takes_no_more_memory_than_a_request_has(s):
    """What tools leave of it, down to nothing, is all that there is for the rest."""
    def message(n):
        tool = {"type": "function", "function": {"name": "f", "x": "a" * n, "parameters": {}}}
        status, _, answer = s.post(CHATS, {"messages": [{"role": "user", "content": "a"}],
                                           "tools": [tool], "max_tokens": 1})
        return status, answer["error"]["message"]
    fits, too_much = 100000, 1000000
    while too_much - fits > 16:
        middle = (fits + too_much) // 2
        if message(middle) == (413, "tools: more than this server keeps"):
            too_much = middle
        else:
            fits = middle
    for n in range(too_much - 64, too_much + 16, 8):
        assert message(n)[0] == 413, (n - too_much, message(n))


def goes_on_where_descriptors_are_few(_):
    s = Server(tern, tiny / "llama-deep.gguf", "-c", 30000, "-np", 1)
    runs, waits = begin_and_read(s, LONG), s.begin(COMPLETIONS, LONG)
    limit_descriptors(s, 48)
    left = [s.begin(COMPLETIONS, LONG) for _ in range(30)]
    time.sleep(0.2)
    [c.close() for c in left]
    time.sleep(0.1)
    held = [s.socket(2) for _ in range(30)]
    held[0].sendall(HEALTH)
    assert held[0].recv(15) == b"HTTP/1.1 200 OK"
    runs.close()
    waits.close()
    time.sleep(0.3)
    limit_descriptors(s, 1)
    more = [s.socket(2) for _ in range(4)]
    begun = ticks(s)
    time.sleep(0.5)
    assert ticks(s) - begun < 10, ticks(s) - begun
    limit_descriptors(s, 1024)
    [c.close() for c in held + more]
    time.sleep(0.2)
    assert s.ask("GET", "/health")[0] == 200 and s.stop() == 0


def cuts_off_who_takes_nothing_before_others(s):
    """Long answers that nobody reads, whole and streamed, do not hold all memory of answers."""
    pieces = {"content": "a" * 210000, "with_pieces": True}
    deaf = []
    for _ in range(4):
        deaf.append(begin_deaf(s, "/tokenize", pieces))
        assert deaf[-1].recv(12) == b"HTTP/1.1 200"
    for _ in range(16):
        deaf.append(begin_deaf(s, COMPLETIONS, {**LONG, "max_tokens": 1900, "logprobs": 3}))
    begun = time.monotonic()
    while s.metric("requests_busy") > 1:
        time.sleep(0.02)
        assert time.monotonic() - begun < 60
    for _ in range(3):
        assert len(s.events(COMPLETIONS, {"prompt": "a", "max_tokens": 50,
                                          "ignore_eos": True})) > 40
    answer = s.good("/tokenize", pieces)
    assert answer["tokens"][-1] == {"id": 276, "piece": "a"}, answer["tokens"][-3:]
    [c.close() for c in deaf]


def tells_at_once_who_is_one_too_many(_):
    """Also where those who were told stay."""
    s = Server(tern, MODEL, "-c", 256, "-np", 1, "--connections", 4)
    held = [s.socket() for _ in range(40)]
    begun = time.monotonic()
    for c in held[4:]:
        assert c.recv(12) == b"HTTP/1.1 503"
    assert time.monotonic() - begun < 2
    [c.close() for c in held]
    time.sleep(0.1)
    assert s.ask("GET", "/health")[0] == 200 and s.stop() == 0


def blames_who_forbids_all_tokens(s):
    n = s.ask("GET", "/v1/models")[2]["data"][0]["meta"]["n_vocab"]
    for more in ({"logit_bias": [[i, False] for i in range(n)]},
                 {"logit_bias": {str(i): -100 for i in range(n)}, "grammar": "root ::= [a-z]"}):
        status, _, answer = s.post(COMPLETIONS, {"prompt": "a", **more})
        assert status == 400 and "logit_bias" in answer["error"]["message"], answer


def goes_on_where_files_may_not_grow(_):
    """A slot that cannot be written says so, and the file that was there stays."""
    with tempfile.TemporaryDirectory() as folder:
        s = Server(tern, MODEL, "-c", 1024, "-np", 1, "--slot-save-path", folder)
        s.good(COMPLETIONS, {"prompt": "the sea " * 200, "max_tokens": 8})
        for status, limit in ((200, None), (500, 4000), (200, None)):
            resource.prlimit(s.process.pid, resource.RLIMIT_FSIZE,
                             (limit or resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            got, _, answer = s.post("/slots/0?action=save", {"filename": "a"})
            assert got == status, (limit, got, answer)
            assert os.listdir(folder) == ["a"], os.listdir(folder)
        assert s.post("/slots/0?action=restore", {"filename": "a"})[0] == 200 and s.stop() == 0


def takes_keys_that_can_be_given(_):
    path = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"keys-{os.getpid()}"
    path.write_bytes(b"\xef\xbb\xbffirst\r\n  second one \t\n\nlast")
    s = Server(tern, MODEL, "-c", 256, "--api-key-file", path)
    for key, status in (("first", 200), ("second one", 200), ("last", 200), ("second", 401),
                        ("\xef\xbb\xbffirst", 401), ("", 401)):
        got = s.ask("GET", "/v1/models", headers={"Authorization": "Bearer " + key})[0]
        assert got == status, (key, got)
    assert s.stop() == 0
    for text, named in (("secret\n".encode("utf-16"), "control"), (b"a\0b\n", "control"),
                        (b"# of the office\nsecret\n", "#"), (b" \n\r\n", "no key")):
        path.write_bytes(text)
        done = subprocess.run([tern, "serve", MODEL, "--port", "0", "--api-key-file", path],
                              capture_output=True, text=True, timeout=20)
        assert done.returncode == 1 and named in done.stderr, (text, done)
    path.unlink()


def bounds_trailers(s):
    head = (b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n11\r\n{\"content\":\"abc\"}\r\n0\r\n")
    end = b"\r\n" + HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    got = s.raw(head + b"Some: thing\r\nElse: \r\nContent-Length: 7\r\n" + end)
    assert got.count(b"HTTP/1.1 200 OK") == 2, got
    for status, trailers in ((b"431", b"X: " + b"y" * 20000 + b"\r\n"),
                             (b"431", b"Name: value\r\n" * 2000),
                             (b"400", b": y\r\n"), (b"400", b"A: b\r\n: y\r\n"),
                             (b"400", b"A: b\n")):
        got = s.raw(head + trailers + end)
        assert got.startswith(b"HTTP/1.1 " + status), (trailers[:20], got)
        assert got.count(b"HTTP/1.1 ") == 1, (trailers[:20], got)


def takes_targets_that_name_it(s):
    for target, host, status in ((b"http://localhost/health", b"localhost", b"200"),
                                 (b"HTTP://LocalHost:8/health?x=1", b"localhost:8", b"200"),
                                 (b"http://evil.example/health", b"localhost", b"400"),
                                 (b"http://localhost/health", b"evil.example", b"400"),
                                 (b"http://evil.example/health", b"evil.example", b"403"),
                                 (b"http://localhost.evil/health", b"localhost", b"400"),
                                 (b"http://x@localhost/health", b"localhost", b"400"),
                                 (b"https://localhost/health", b"localhost", b"400"),
                                 (b"http://localhost", b"localhost", b"400"),
                                 (b"http:///health", b"localhost", b"400"),
                                 (b"http://localhost//health", b"localhost", b"404")):
        got = s.raw(b"GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (target, host))
        assert got.startswith(b"HTTP/1.1 " + status), (target, host, got)


def names_the_methods_that_a_path_has(s):
    for method, path, allow in (("POST", "/health", "GET, HEAD"), ("PUT", COMPLETIONS, "POST"),
                                ("HEAD", CHATS, "POST"), ("GET", "/slots/0", "POST"),
                                ("DELETE", "/slots", "GET, HEAD")):
        status, headers, _ = s.ask(method, path)
        assert (status, headers["Allow"]) == (405, allow), (method, path, status, headers["Allow"])


TESTS = [gives_places_in_the_queue_to_those_who_are_there, takes_no_more_memory_than_a_request_has,
         goes_on_where_descriptors_are_few, cuts_off_who_takes_nothing_before_others,
         tells_at_once_who_is_one_too_many, blames_who_forbids_all_tokens,
         goes_on_where_files_may_not_grow, takes_keys_that_can_be_given, bounds_trailers,
         takes_targets_that_name_it, names_the_methods_that_a_path_has]

if __name__ == "__main__":
    server = Server(tern, MODEL, "-c", 2048, "-np", 2, "--chat-template", "chatml")
    sys.exit(run(TESTS, server, sys.argv[3:]) > 0)
