"""A headless Chromium, driven over DevTools' pipe: no port, no driver, no package."""
import base64
import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading
import time

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
# Nothing of its own goes out either, so that every request seen is the page's.
ARGS = ["--remote-debugging-pipe", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--disable-default-apps", "--disable-extensions", "--hide-scrollbars", "--mute-audio",
        "--disable-dev-shm-usage", "--force-color-profile=srgb", "--lang=en-US", "about:blank"]


def program():
    return next((p for p in map(shutil.which, NAMES) if p), None)


class Broken(Exception):
    pass


class Browser:
    def __init__(self, path):
        self.folder = tempfile.mkdtemp(prefix="tern-page-")
        to_read, self.out = os.pipe()
        self.into, to_write = os.pipe()

        def places():
            # Both may lie where the other has to go.
            a, b = os.dup(to_read), os.dup(to_write)
            while a < 5 or b < 5:
                a, b = (os.dup(a) if a < 5 else a), (os.dup(b) if b < 5 else b)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [path, f"--user-data-dir={self.folder}", *ARGS], preexec_fn=places, close_fds=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.number, self.answers, self.pages = 0, {}, {}
        self.said, self.writing = threading.Condition(), threading.Lock()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        rest = b""
        while True:
            try:
                more = os.read(self.into, 1 << 16)
            except OSError:
                more = b""
            if not more:
                break
            *whole, rest = (rest + more).split(b"\0")
            for text in whole:
                self.take(json.loads(text))
        with self.said:
            self.answers = None
            self.said.notify_all()

    def take(self, message):
        if "id" in message:
            with self.said:
                self.answers[message["id"]] = message
                self.said.notify_all()
        elif message.get("sessionId") in self.pages:
            self.pages[message["sessionId"]].happened(message["method"], message["params"])

    def ask(self, method, params=None, session=None, within=30):
        with self.said:
            self.number += 1
            number = self.number
        message = {"id": number, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        with self.writing:
            data = json.dumps(message).encode() + b"\0"
            while data:
                data = data[os.write(self.out, data):]
        with self.said:
            if not self.said.wait_for(lambda: self.answers is None or number in self.answers,
                                      within):
                raise Broken(f"{method}: no answer in {within} s")
            if self.answers is None:
                raise Broken(f"{method}: the browser has ended")
            answer = self.answers.pop(number)
        if "error" in answer:
            raise Broken(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def page(self, **kw):
        """A window with a storage of its own."""
        context = self.ask("Target.createBrowserContext")["browserContextId"]
        return Page(self, context, **kw)

    def close(self):
        try:
            self.ask("Browser.close", within=5)
            self.process.wait(5)
        except (Broken, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Page:
    def __init__(self, browser, context, width=1280, height=800, scale=1, touch=False, dark=False):
        self.browser, self.context = browser, context
        self.requests, self.refused, self.problems = [], [], []
        self.events = queue.Queue()
        target = browser.ask("Target.createTarget", {"url": "about:blank",
                                                     "browserContextId": context})["targetId"]
        self.session = browser.ask("Target.attachToTarget", {"targetId": target,
                                                             "flatten": True})["sessionId"]
        browser.pages[self.session] = self
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(domain + ".enable")
        self.ask("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": scale, "mobile": touch})
        # Several windows are used at once, and each as if it were in front.
        self.ask("Emulation.setFocusEmulationEnabled", {"enabled": True})
        if touch:
            self.ask("Emulation.setTouchEmulationEnabled", {"enabled": True})
        self.media(dark)

    def ask(self, method, params=None, within=30):
        return self.browser.ask(method, params, self.session, within)

    def happened(self, method, params):
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description")
                                 or details["text"])
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.problems.append(params["entry"]["text"])
        elif method == "Page.javascriptDialogOpening":
            self.problems.append("a dialog: " + params["message"])
            threading.Thread(target=self.ask, args=("Page.handleJavaScriptDialog",
                                                    {"accept": False}), daemon=True).start()

    def media(self, dark=False, still=True):
        self.ask("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"}]})

    def slow(self, rate):
        """So many bytes a second come in; -1: as many as there are."""
        self.ask("Network.emulateNetworkConditions", {"offline": False, "latency": 0,
                 "downloadThroughput": rate, "uploadThroughput": -1})

    def go(self, url):
        self.ask("Page.navigate", {"url": url})
        self.wait("document.readyState === 'complete'")

    def reload(self):
        # The old document would answer for the new one.
        self.js("window.isOld = true")
        self.ask("Page.reload")
        self.wait("!window.isOld && document.readyState === 'complete'")

    def js(self, text, within=30):
        """The value of an expression; a promise is waited for."""
        answer = self.ask("Runtime.evaluate", {"expression": text, "returnByValue": True,
                                               "awaitPromise": True}, within)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise Broken(text[:200] + ": " + (details.get("exception", {}).get("description")
                                              or details["text"]))
        return answer["result"].get("value")

    def wait(self, text, within=40):
        """Until an expression is true; how long it took."""
        begun = time.monotonic()
        while True:
            try:
                if self.js(f"Boolean({text})"):
                    return time.monotonic() - begun
            except Broken as e:
                if "context" not in str(e):  # between two documents there is none
                    raise
            if time.monotonic() - begun > within:
                raise Broken("never came true: " + text[:300])
            time.sleep(0.02)

    def click(self, selector):
        self.press(selector)()

    def press(self, selector):
        """Presses the left button there; what is returned lets it go."""
        place = self.js("(() => { const e = document.querySelector(%s); if (!e) return null;"
                        " e.scrollIntoView({block: 'nearest'});"
                        " const r = e.getBoundingClientRect();"
                        " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
                        % json.dumps(selector))
        if not place:
            raise Broken("nothing to click: " + selector)
        at = {"x": place[0], "y": place[1], "button": "left", "clickCount": 1}
        self.ask("Input.dispatchMouseEvent", {"type": "mouseMoved", **at})
        self.ask("Input.dispatchMouseEvent", {"type": "mousePressed", **at})
        return lambda: self.ask("Input.dispatchMouseEvent", {"type": "mouseReleased", **at})

    def type(self, text):
        self.ask("Input.insertText", {"text": text})

    def key(self, key, shift=False, alt=False):
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowUp": 38, "ArrowDown": 40, "/": 191,
                 "n": 78}
        texts = {"Enter": "\r", "/": "/"}
        given = {"key": key, "windowsVirtualKeyCode": codes[key], "modifiers": 8 * shift + alt,
                 "code": {"n": "KeyN", "/": "Slash"}.get(key, key)}
        self.ask("Input.dispatchKeyEvent", {"type": "keyDown", **given,
                                            **({"text": texts[key]} if key in texts else {})})
        self.ask("Input.dispatchKeyEvent", {"type": "keyUp", **given})

    def picture(self, path):
        data = self.ask("Page.captureScreenshot", {"format": "png"})["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))

    def close(self):
        self.browser.ask("Target.disposeBrowserContext", {"browserContextId": self.context})
