"""What a tern serve does for one client, whatever others do.

    check_company.py TERN TINY [TEST...]
"""
import http.client
import json
import os
import pathlib
import signal
import socket
import sys
import time
import traceback

from harness import Streams
from asking import at_once
from server import Server, receive

tern, tiny = sys.argv[1], pathlib.Path(sys.argv[2])
MODEL = tiny / "llama-q8_0.gguf"
if not MODEL.exists():
    print("skipped: no small models (they need numpy)")
    sys.exit(77)
GAP = 1.0  # a machine that runs tests is busy; the bar itself is tests/bench/serve_load.py's
HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def body(i, **more):
    """Prompts of many lengths, some with a common head."""
    prompt = ("the sea is wide and " * (i % 3 * 9)) + f"{i} ships " * (1 + i % 11 * 4)
    return {"prompt": prompt, "max_tokens": 24, "temperature": 0.3 * (i % 4), "seed": i,
            "ignore_eos": True, "logprobs": 5, **more}


def a_reply_has_the_same_bits_alone_among_31_others_and_after_a_restart():
    """Text, ids and log-probabilities, in full precision."""
    def reply(s, i):
        choice = s.good("/v1/completions", body(i))["choices"][0]
        return choice["text"], choice["logprobs"], choice["finish_reason"]
    for limits in (["-np", 32, "-c", 1024], ["-np", 32, "-c", 1024, "--chunk", 48, "-t", 2]):
        s = Server(tern, MODEL, *limits)
        alone = [reply(s, i) for i in range(32)]
        assert s.metric("sequences_running") == 0
        assert at_once([lambda i=i: reply(s, i) for i in range(32)]) == alone
        assert s.stop() == 0
        s = Server(tern, MODEL, *limits)
        assert at_once([lambda i=i: reply(s, i) for i in reversed(range(32))])[::-1] == alone
        assert s.stop() == 0
        first = first_of.setdefault("bits", alone)
        assert first == alone  # nor do threads or a step's size change any


first_of = {}


def ids_of(s, messages):
    prompt = s.good("/apply-template", {"messages": messages})["prompt"]
    return s.good("/tokenize", {"content": prompt, "add_special": True,
                                "parse_special": True})["tokens"]


def a_turn_of_a_conversation_computes_only_what_is_new():
    """Ten turns, and between each a request for a title, of another head. What a turn answers
    is written so that its tokens are found again: one word, over and over."""
    s = Server(tern, MODEL, "-c", 4096, "-np", 2, "--chat-template", "chatml")
    word = s.good("/tokenize", {"content": "a sea"})["tokens"][-1]
    messages = [{"role": "system", "content": "You keep a light by the sea. " * 30}]
    before, n_known = [], 0
    for turn in range(10):
        messages.append({"role": "user", "content": f"{turn}: what is the weather, and why?"})
        prompt, cached = s.metric("prompt_tokens_total"), s.metric("prompt_tokens_cached_total")
        a = s.good("/v1/chat/completions", {"messages": messages, "max_tokens": 20,
                                            "temperature": 0, "logit_bias": {str(word): 100}})
        ids = ids_of(s, messages)
        usage = a["usage"]
        assert usage["prompt_tokens"] == len(ids)
        # Known is what the last turn had as its prompt, and what it answered but for the last
        # token; blocks of 16 are found whole.
        same = 0
        while same < min(len(before), len(ids)) and before[same] == ids[same]:
            same += 1
        known = min(same, n_known)
        found = usage["prompt_tokens_details"]["cached_tokens"]
        assert known - 16 < found <= known, (turn, known, usage)
        assert turn == 0 or known >= n_known - 24, (turn, known, n_known)  # the word came back
        assert s.metric("prompt_tokens_total") - prompt == len(ids)
        assert s.metric("prompt_tokens_cached_total") - cached == found
        answer = a["choices"][0]["message"]["content"]
        before, n_known = ids + [word] * 20, len(ids) + 19
        messages.append({"role": "assistant", "content": answer})
        title = [{"role": "system", "content": "Write a title."},
                 {"role": "user", "content": " ".join(m["content"] for m in messages[1:])}]
        s.good("/v1/chat/completions", {"messages": title, "max_tokens": 4})
    assert s.stop() == 0


def streams_keep_their_gap_beside_bad_clients():
    s = Server(tern, MODEL, "-c", 4096, "-np", 4, "--connections", 256)
    streams = Streams(s, 2)
    idle = [s.socket() for _ in range(200)]
    slow_writers = [s.socket() for _ in range(8)]
    endless = {"prompt": "a", "max_tokens": 3000, "stream": True, "ignore_eos": True}
    slow_readers = [s.begin("/v1/completions", endless, 60) for _ in range(2)]
    for c in slow_readers:
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    whole = s.begin("/v1/completions", {"prompt": "the sea", "max_tokens": 5}, 60)
    request = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    answer = b""
    for i in range(30):  # a byte each and a byte from each, ten times a second
        for c in slow_writers:
            c.sendall(request[i:i + 1])
        for c in slow_readers:
            c.recv(1)
        answer += whole.recv(1)
        began = time.monotonic()
        assert s.ask("GET", "/health")[0] == 200
        assert time.monotonic() - began < GAP + 2 * streams.late
        time.sleep(0.1)
    assert answer == b"HTTP/1.1 200 OK\r\n"[:30] + answer[17:], answer
    whole.close()
    for c in slow_writers:  # late, and yet answered
        c.sendall(request[30:])
        said = receive(c)
        assert said.startswith(b"HTTP/1.1 200 OK") or streams.late > 5, said
    huge = s.raw(HEAD + b"Content-Length: 1073741824\r\n\r\n" + b"x" * 100000)
    assert huge.startswith(b"HTTP/1.1 413"), huge[:40]
    with s.socket() as c:  # the same of unknown length: cut off soon, not at its end
        c.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        n = 0
        try:
            while n < 1 << 30:
                n += c.send(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        except OSError:
            pass
        assert n < 64 << 20, n
        said = receive(c)
        assert said.startswith(b"HTTP/1.1 413"), said[:300]
    for deep in (b"[" * 100000, b'{"a":' * 100000, b"[" * 100000 + b"]" * 100000):
        status, _, said = s.post("/v1/completions", b'{"prompt": "a", "x": ' + deep)
        assert status == 400 and said["error"]["message"], (status, said)
    assert all(c.fileno() >= 0 for c in idle)
    idle[100].sendall(request)
    assert receive(idle[100]).startswith(b"HTTP/1.1 200 OK")
    [c.close() for c in idle + slow_writers + slow_readers]
    streams.end()
    print(f"  largest gap {streams.gap:.3f} s over {streams.n_events} events; "
          f"a sleeper was {streams.late:.3f} s late")
    assert streams.gap < GAP + 2 * streams.late and streams.n_events > 200
    s.wait_idle()
    assert s.stop() == 0


def waits_of(s):
    """How often all of its threads went to sleep."""
    n = 0
    for task in os.listdir(f"/proc/{s.process.pid}/task"):
        for line in open(f"/proc/{s.process.pid}/task/{task}/status"):
            if line.startswith("voluntary_ctxt_switches"):
                n += int(line.split()[1])
    return n


def an_idle_server_does_not_wake_up():
    s = Server(tern, MODEL, "-c", 1024, "-t", 2)
    kept = http.client.HTTPConnection("127.0.0.1", s.port, timeout=60)
    for _ in range(3):
        kept.request("POST", "/v1/completions", json.dumps(body(3)),
                     {"Content-Type": "application/json"})
        assert kept.getresponse().read()
    idle = [s.socket() for _ in range(20)]
    s.wait_idle()
    n_woken = []
    for _ in range(4):  # a debugger, or whoever else stops processes, wakes them too
        time.sleep(0.5)
        before = waits_of(s)
        time.sleep(1.5)
        n_woken.append(waits_of(s) - before)
        if n_woken[-1] == 0:
            break
    assert n_woken[-1] == 0, n_woken
    before = waits_of(s)
    kept.request("GET", "/health")
    assert kept.getresponse().read()
    end = time.monotonic() + 10  # they are counted, when the thread goes to sleep again
    while waits_of(s) == before and time.monotonic() < end:
        time.sleep(0.01)
    assert waits_of(s) > before
    [c.close() for c in [kept, *idle]]
    assert s.stop() == 0


def it_ends_well_also_when_it_is_told_twice():
    """The second signal may come when all has ended but for the process."""
    for wait in (0, 0.001, 0.002, 0.004, 0.008, 0.016):
        s = Server(tern, MODEL, "-c", 1024, "--drain", 0)
        c = s.begin("/v1/completions", {"prompt": "a", "max_tokens": 1000, "stream": True})
        c.recv(1)
        s.process.send_signal(signal.SIGTERM)
        time.sleep(wait)
        assert s.stop() == 0, s.process.returncode
        c.close()


TESTS = [a_reply_has_the_same_bits_alone_among_31_others_and_after_a_restart,
         a_turn_of_a_conversation_computes_only_what_is_new,
         streams_keep_their_gap_beside_bad_clients, an_idle_server_does_not_wake_up,
         it_ends_well_also_when_it_is_told_twice]
failed = 0
for test in TESTS:
    if sys.argv[3:] and test.__name__ not in sys.argv[3:]:
        continue
    begun = time.monotonic()
    try:
        test()
        print(f"ok {test.__name__} ({time.monotonic() - begun:.2f} s)", flush=True)
    except Exception:
        failed += 1
        print(f"FAILED {test.__name__}\n{traceback.format_exc()}", flush=True)
sys.exit(bool(failed))
