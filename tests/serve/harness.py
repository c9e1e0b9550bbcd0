"""Runs a check's tests, one after the other, and tells of each; and streams to run beside them."""
import http.client
import json
import sys
import threading
import time


def run(tests, server, only):
    """How many failed. A test is a function of the server (None: it starts its own)."""
    failed = 0
    for test in tests:
        if only and test.__name__ not in only:
            continue
        begun = time.monotonic()
        try:
            test(server)
            print(f"ok {test.__name__} ({time.monotonic() - begun:.2f} s)", flush=True)
        except Exception as e:
            failed += 1
            where = e.__traceback__
            while where.tb_next:
                where = where.tb_next
            print(f"FAILED {test.__name__}: {where.tb_frame.f_code.co_filename.split('/')[-1]}, "
                  f"line {where.tb_lineno}: {type(e).__name__}: {str(e)[:300]}", flush=True)
            if server and server.process.poll() is not None:
                print("the server has ended:", server.process.returncode,
                      server.process.stderr.read())
                return failed
    if server and server.stop() != 0:
        print("FAILED: the server's exit code", server.said[-300:])
        failed += 1
    return failed


def tiny_model(folder, name):
    path = folder / name
    if not path.exists():
        print("skipped: no small models (they need numpy)")
        sys.exit(77)
    return path


class Streams:
    """Streams that run until they are ended, and the largest gap between two of their events; and
    how late a thread that only sleeps was woken at most, which is the machine's own part in it."""
    def __init__(self, s, n):
        self.s, self.gap, self.late, self.n_events, self.over = s, 0, 0, 0, False
        self.threads = [threading.Thread(target=self.run, args=(i,), daemon=True) for i in range(n)]
        self.threads.append(threading.Thread(target=self.sleep, daemon=True))
        [t.start() for t in self.threads]

    def run(self, i):
        while not self.over:
            c = http.client.HTTPConnection("127.0.0.1", self.s.port, timeout=60)
            ask = {"prompt": f"{i} the sea", "max_tokens": 400, "ignore_eos": True, "stream": True}
            c.request("POST", "/v1/completions", json.dumps(ask),
                      {"Content-Type": "application/json"})
            last = None
            for line in c.getresponse():
                now = time.monotonic()
                if line.startswith(b"data: {"):
                    self.gap = max(self.gap, now - (last or now))
                    self.n_events += 1
                    last = now
            c.close()

    def sleep(self):
        while not self.over:
            begun = time.monotonic()
            time.sleep(0.01)
            self.late = max(self.late, time.monotonic() - begun)

    def end(self):
        self.over = True
        [t.join() for t in self.threads]
