"""A tern serve to ask, over raw sockets and http.client."""
import atexit
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time


class Server:
    def __init__(self, tern, model, *args, **more):
        self.process = subprocess.Popen(
            [tern, "serve", "-m", str(model), "--port", "0", "-t", "1", *map(str, args)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **more)
        atexit.register(self.process.kill)
        self.said = ""
        for line in self.process.stderr:
            self.said += line
            found = re.search(r"at http://[^ ]*:(\d+),", line)
            if found:
                self.port = int(found[1])
                break
        else:
            raise RuntimeError("the server did not start: " + self.said)

    def stop(self, number=signal.SIGTERM, within=30):
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(within)
        self.said += self.process.stderr.read()
        self.process.stderr.close()
        return code

    def socket(self, timeout=20):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=timeout)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def raw(self, data, timeout=20):
        """Sends bytes, and all that comes until the server closes."""
        with self.socket(timeout) as s:
            try:
                s.sendall(data)
            except OSError:
                pass
            return receive(s)

    def begin(self, path, body, timeout=20):
        """A socket on which a request was sent, and nothing read yet."""
        s, text = self.socket(timeout), json.dumps(body).encode()
        s.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                  b"Content-Length: %d\r\n\r\n" % (path.encode(), len(text)) + text)
        return s

    def ask(self, method, path, body=None, headers=None, timeout=60):
        """Status, headers, and the body as JSON, or as text where it is none."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        given = {"Content-Type": "application/json"} if body is not None else {}
        given.update(headers or {})
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        c.request(method, path, body, given)
        r = c.getresponse()
        text = r.read()
        c.close()
        try:
            return r.status, r.headers, json.loads(text)
        except ValueError:
            return r.status, r.headers, text.decode()

    def post(self, path, body, **kw):
        return self.ask("POST", path, body, **kw)

    def good(self, path, body, **kw):
        status, _, answer = self.post(path, body, **kw)
        assert status == 200, (path, body, status, answer)
        return answer

    def events(self, path, body):
        """The objects of a stream, read strictly: one JSON object an event, then [DONE]."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        c.request("POST", path, json.dumps({**body, "stream": True}),
                  {"Content-Type": "application/json"})
        r = c.getresponse()
        text = r.read().decode()
        c.close()
        assert r.status == 200, text
        assert r.headers["Content-Type"] == "text/event-stream"
        parts = [p for p in text.split("\n\n") if p and not p.startswith(":")]
        assert text.endswith("\n\n") and parts[-1] == "data: [DONE]", text[-200:]
        for p in parts:
            assert p.startswith("data: ") and "\n" not in p, p
        return [json.loads(p[6:]) for p in parts[:-1]]

    def named_events(self, path, body):
        """The same of a stream whose events have names, which their objects repeat."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        c.request("POST", path, json.dumps({**body, "stream": True}),
                  {"Content-Type": "application/json"})
        text = c.getresponse().read().decode()
        c.close()
        found = []
        for p in text.split("\n\n")[:-1]:
            name, data = p.split("\n")
            found.append(json.loads(data.removeprefix("data: ")))
            assert name == "event: " + found[-1]["type"], p
        assert [e["sequence_number"] for e in found] == list(range(len(found)))
        return found

    def metric(self, name):
        text = self.ask("GET", "/metrics")[2]
        return float(re.search(rf"^tern_{name} (.*)$", text, re.M)[1])

    def wait_idle(self, within=10):
        """Seconds until nothing runs any more."""
        begun = time.monotonic()
        while self.metric("sequences_running") > 0 or self.metric("requests_busy") > 1:
            assert time.monotonic() - begun < within, "it still runs"
            time.sleep(0.005)
        return time.monotonic() - begun

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def anonymous_kib(self):
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith("RssAnon"):
                return int(line.split()[1])
        return 0


def receive(s):
    data = b""
    while True:
        try:
            more = s.recv(65536)
        except (TimeoutError, OSError):
            break
        if not more:
            break
        data += more
    return data
