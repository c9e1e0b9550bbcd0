"""Slots that are saved and restored while others stream, on a disk that is slow.

    check_files.py TERN TINY SLOW_DISK.so [TEST...]
"""
import os
import pathlib
import signal
import sys
import tempfile
import threading
import time

from harness import Streams, run, tiny_model
from server import Server

tern, tiny, slow_disk = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
MODEL = tiny_model(tiny, "llama-mha.gguf")
GAP = 1.0  # a machine that runs tests is busy; the disk takes 1.5 s to sync
PROMPT = [5 + i % 101 for i in range(4000)]  # some 12 MiB of keys and values


def serve(folder, *args):
    folder = os.path.realpath(folder)
    return Server(tern, MODEL, "-c", 8192, "-np", 4, "-ctk", "f32", "-ctv", "f32",
                  "--slot-save-path", folder, *args,
                  env={**os.environ, "LD_PRELOAD": slow_disk, "SLOW_DISK": folder})


def answer(s):
    return s.good("/v1/completions", {"prompt": PROMPT, "max_tokens": 8, "temperature": 0,
                                      "logprobs": 3, "ignore_eos": True, "seed": 0})


def largest_slot(s):
    return max(s.ask("GET", "/slots")[2], key=lambda x: x["n_tokens"])["id"]


def action(s, slot, what, name):
    return s.post(f"/slots/{slot}?action={what}", {"filename": name}, timeout=120)


def wait_for_temporary(folder):
    """Until there is a file that is no one's yet."""
    end = time.monotonic() + 20
    while not any("." in p.name for p in folder.iterdir()):
        assert time.monotonic() < end
        time.sleep(0.01)


def streams_go_on_while_a_slot_is_saved_and_restored(_):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        s = serve(folder)
        first = answer(s)
        slot = largest_slot(s)
        streams = Streams(s, 2)
        begun = time.monotonic()
        asked = threading.Thread(target=lambda: results.append(action(s, slot, "save", "beside")))
        results = []
        asked.start()
        wait_for_temporary(folder)
        listed = s.ask("GET", "/slots")[2][slot]
        assert listed["is_processing"] and listed["n_tokens"] > 4000, listed
        # Requests are begun meanwhile, and one that wants the same slot's file waits its turn.
        assert s.good("/v1/completions", {"prompt": "a", "max_tokens": 3})
        assert asked.is_alive()
        asked.join()
        took = time.monotonic() - begun
        status, _, said = results[0]
        assert status == 200 and said["n_written"] > 10 << 20 and took > 1.8, (said, took)
        assert said["timings"]["save_ms"] > 1800
        streams.end()
        print(f"  saved in {took:.1f} s: gap {streams.gap:.3f} s over {streams.n_events} events, "
              f"a sleeper was {streams.late:.3f} s late")
        assert streams.gap < GAP + 2 * streams.late and streams.n_events > 30
        s.wait_idle()
        data = (folder / "beside").read_bytes()
        assert s.stop() == 0

        s = serve(folder)
        streams = Streams(s, 2)
        time.sleep(0.2)
        begun = time.monotonic()
        status = 409  # a stream may be in the slot, since one that ends stays in its own
        while status == 409:
            begun = time.monotonic()
            status, _, said = action(s, 3, "restore", "beside")
        took = time.monotonic() - begun
        assert status == 200 and said["n_read"] == len(data) and took > 0.5, (said, took)
        streams.end()
        print(f"  restored in {took:.1f} s: gap {streams.gap:.3f} s over {streams.n_events} "
              f"events, a sleeper was {streams.late:.3f} s late")
        assert streams.gap < GAP + 2 * streams.late and streams.n_events > 30
        s.wait_idle()
        again = answer(s)
        found = again["usage"]["prompt_tokens_details"]["cached_tokens"]
        assert found >= 3980 and again["choices"] == first["choices"], again["usage"]
        assert action(s, largest_slot(s), "save", "again")[0] == 200
        assert (folder / "again").read_bytes() == data  # written with nobody beside it
        assert sorted(p.name for p in folder.iterdir()) == ["again", "beside"]
        assert s.stop() == 0


def who_leaves_in_the_middle_leaves_nothing(_):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        s = serve(folder)
        answer(s)
        slot = largest_slot(s)
        (folder / "kept").write_bytes(b"what was there")
        c = s.begin(f"/slots/{slot}?action=save", {"filename": "kept"}, 60)
        wait_for_temporary(folder)
        c.close()
        s.wait_idle()
        assert [p.name for p in folder.iterdir()] == ["kept"]
        assert (folder / "kept").read_bytes() == b"what was there"
        # The slot is as it was, and a second one is served.
        assert s.ask("GET", "/slots")[2][slot]["n_tokens"] > 4000
        assert action(s, slot, "save", "kept")[0] == 200
        assert (folder / "kept").stat().st_size > 10 << 20
        # A restore whose client leaves gives the slot back.
        c = s.socket(60)
        data = b'{"filename": "kept"}'
        c.sendall(b"POST /slots/3?action=restore HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                  b"application/json\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
        end = time.monotonic() + 20
        while not s.ask("GET", "/slots")[2][3]["is_processing"]:
            assert time.monotonic() < end
            time.sleep(0.01)
        c.close()
        s.wait_idle()
        assert s.ask("GET", "/slots")[2][3] == {"id": 3, "n_ctx": 8192, "is_processing": False,
                                                "n_tokens": 0}
        assert action(s, 3, "restore", "kept")[0] == 200
        assert s.stop() == 0


def a_signal_in_the_middle_leaves_nothing_or_a_whole_file(_):
    for drain, whole in ((20, True), (0, False)):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            s = serve(folder, "--drain", drain)
            answer(s)
            c = s.begin(f"/slots/{largest_slot(s)}?action=save", {"filename": "kept"}, 60)
            wait_for_temporary(folder)
            time.sleep(0.3)
            s.process.send_signal(signal.SIGTERM)
            head = c.recv(100)
            assert head.startswith(b"HTTP/1.1 200") if whole else head == b"", head
            assert s.stop() == 0
            assert [p.name for p in folder.iterdir()] == (["kept"] if whole else [])
            if whole:
                s = serve(folder)
                assert action(s, 0, "restore", "kept")[0] == 200
                assert s.stop() == 0


TESTS = [streams_go_on_while_a_slot_is_saved_and_restored,
         who_leaves_in_the_middle_leaves_nothing,
         a_signal_in_the_middle_leaves_nothing_or_a_whole_file]
sys.exit(run(TESTS, None, sys.argv[4:]) > 0)
