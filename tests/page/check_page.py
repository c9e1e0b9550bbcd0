"""Uses the page of tern serve as people do, in headless Chromium.

    check_page.py TERN TINY [NAME...]

The page and the answers are a real server's; what a small model would never say, such as hostile
markup, thinking or progress, comes from a fetch that is put in the page's way. TERN_SHOTS names a
folder for pictures.
"""
import gzip
import json
import os
import pathlib
import socket
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "serve"))
from browser import Broken, Browser, program
from server import Server

tern, tiny = sys.argv[1], pathlib.Path(sys.argv[2])
MODEL = tiny / "llama-q8_0.gguf"
SHOTS = os.environ.get("TERN_SHOTS")
if not MODEL.exists() or not program():
    print("skipped: no small models (they need numpy)" if program() else
          "skipped: no Chromium (Debian: chromium-headless-shell)")
    sys.exit(77)

DONE = "document.querySelectorAll('.assistant').length && " \
       "!document.querySelector('[aria-busy]') && document.getElementById('send').title[1] === 'e'"

# An answer of pieces {content, reasoning_content} or {prompt_progress}, one each so many ms.
SCRIPT = """
window.realFetch = window.realFetch || window.fetch;
window.fetch = (url, o) => {
    if (url !== '/v1/chat/completions')
        return realFetch(url, o);
    window.asked = JSON.parse(o.body);
    const pieces = %s, ms = %d, lines = [];
    let n = 0, stopped = false;
    const event = (x) => 'data: ' + JSON.stringify(x) + '\\n\\n';
    const of = (p) => p.prompt_progress ? {choices: [], prompt_progress: p.prompt_progress}
        : {choices: [{index: 0, delta: p, finish_reason: null}]};
    for (const p of pieces)
        lines.push(event(of(p)));
    lines.push(event({choices: [{index: 0, delta: {}, finish_reason: 'stop'}]}));
    lines.push(event({choices: [], usage: {prompt_tokens: 40, completion_tokens: pieces.length,
        total_tokens: 40 + pieces.length, prompt_tokens_details: {cached_tokens: 16}}}));
    const bytes = new TextEncoder();
    return Promise.resolve(new Response(new ReadableStream({
        async pull(c) {
            if (o.signal.aborted) {
                c.error(new DOMException('stopped', 'AbortError'));
                return;
            }
            if (ms)
                await new Promise((r) => setTimeout(r, ms));
            let text = '';
            do {
                text += lines[n++];
            } while (!ms && n < lines.length && text.length < 2000);
            if (n >= lines.length)
                text += 'data: [DONE]\\n\\n';
            c.enqueue(bytes.encode(text));
            if (n >= lines.length)
                c.close();
        },
    })));
};
true
"""


def opened(s, b, **kw):
    p = b.page(**kw)
    p.go(f"http://127.0.0.1:{s.port}/")
    p.wait("document.querySelector('.empty dl')")
    return p


def settings(p, **values):
    p.js("localStorage.setItem('tern.settings', %s)" % json.dumps(json.dumps(values)))
    p.reload()
    p.wait("document.getElementById('model').textContent")


def script(p, pieces, ms=0):
    p.js(SCRIPT % (json.dumps(pieces), ms))


def say(p, text, wait=True):
    before = p.js("document.querySelectorAll('.assistant').length")
    p.click("#input")
    p.type(text)
    p.key("Enter")
    p.wait(f"document.querySelectorAll('.assistant').length > {before}")
    if wait:
        p.wait(DONE)


def last(p, what=".prose"):
    return p.js("(() => { const l = document.querySelectorAll('.assistant %s');"
                " return l.length ? l[l.length - 1].textContent.trim() : null; })()" % what)


def fine(s, p):
    """Nothing went wrong in the page, and it asked nobody but its server."""
    assert not p.problems, p.problems
    own = (f"http://127.0.0.1:{s.port}/", "data:", "blob:", "about:blank")
    assert all(u.startswith(own) for u in p.requests), p.requests


def picture(p, name):
    if SHOTS:
        p.picture(f"{SHOTS}/{name}.png")


# --- from the server ---

def comes_whole_and_lets_nothing_out(s, b):
    status, headers, text = s.ask("GET", "/")
    policy = headers["Content-Security-Policy"]
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in policy and "connect-src 'self'" in policy
    for none in ("form-action", "base-uri", "frame-ancestors"):
        assert f"{none} 'none'" in policy, policy
    assert "unsafe" not in policy and "http:" not in policy and "*" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-DNS-Prefetch-Control"] == "off"
    for wrong in ('src="http', "src='http", "<link rel=\"stylesheet", "@import", "url(http"):
        assert wrong not in text, wrong
    assert "Permission is hereby granted" in text and "Apache License" in text
    status, again, _ = s.ask("GET", "/", headers={"If-None-Match": headers["ETag"]})
    assert status == 304 and again["ETag"] == headers["ETag"]
    raw = s.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: br, gzip\r\n"
                b"Connection: close\r\n\r\n")
    head, _, body = raw.partition(b"\r\n\r\n")
    assert b"Content-Encoding: gzip" in head and gzip.decompress(body).decode() == text
    assert s.ask("HEAD", "/")[0] == 200
    assert s.ask("GET", "/", headers={"Host": "elsewhere.example"})[0] == 403


def tells_of_its_pool(s, b):
    s.good("/v1/completions", {"prompt": "the sea was " * 20, "max_tokens": 2})
    begun = time.monotonic()
    while not (pool := s.ask("GET", "/pool")[2])["pools"][0]["kept"] or pool["pools"][0]["used"]:
        assert time.monotonic() - begun < 5, pool["pools"][0]
    for one in pool["pools"]:
        assert one["blocks"] == one["free"] + one["kept"] + one["used"] + one["shared"]
        assert len(one["cells"]) == -(-one["blocks"] // one["each"])
        assert set(one["cells"]) <= set(".kus")
    assert pool["running"] == 0 and pool["sequences"] == 4 and pool["generated_tokens"] > 0
    # What runs together from one beginning is seen to share it.
    body = {"prompt": "the sea was " * 20, "max_tokens": 600, "ignore_eos": True, "n": 3}
    asked = threading.Thread(target=s.good, args=("/v1/completions", body))
    asked.start()
    seen = 0
    while asked.is_alive() and not seen:
        seen = s.ask("GET", "/pool")[2]["pools"][0]["shared"]
        time.sleep(0.01)
    asked.join()
    assert seen > 0


# --- talking ---

def types_streams_and_keeps(s, b):
    p = opened(s, b)
    settings(p, max_tokens=120, temperature=0)
    assert p.js("document.activeElement.id") == "input"
    p.ask("Network.emulateNetworkConditions", {"offline": False, "latency": 0,
                                               "downloadThroughput": 40000,
                                               "uploadThroughput": -1})
    say(p, "the sea was", wait=False)
    lengths = set()
    while not p.js(f"Boolean({DONE})"):
        lengths.add(p.js("document.querySelector('.prose').textContent.length"))
    assert len(lengths) > 2, lengths
    p.ask("Network.emulateNetworkConditions", {"offline": False, "latency": 0,
                                               "downloadThroughput": -1, "uploadThroughput": -1})
    text = last(p)
    assert text and "tokens" in last(p, ".figures")
    assert p.js("document.querySelector('.user .text').textContent") == "the sea was"
    assert "#" in p.js("location.href") and p.js("document.title") == "the sea was – Tern"
    p.reload()
    p.wait("document.querySelector('.assistant .figures')")
    assert last(p) == text
    assert p.js("document.querySelectorAll('#list .talk').length") == 1
    say(p, "and then")
    assert p.js("document.querySelectorAll('.message').length") == 4
    assert "reused" in last(p, ".figures"), last(p, ".figures")
    p.click("#new")
    p.wait("document.querySelector('.empty')")
    p.click("#list .talk a")
    p.wait("document.querySelectorAll('.message').length === 4")
    fine(s, p)
    p.close()


def stops(s, b):
    p = opened(s, b)
    settings(p, max_tokens=100000)
    script(p, [{"content": f"word {i} "} for i in range(3000)], 5)
    for way in ("key", "button"):
        say(p, "go on", wait=False)
        p.wait("document.querySelector('.assistant:last-child .prose').textContent.length > 40")
        assert p.js("document.getElementById('send').title") == "Stop (Esc)"
        p.key("Escape") if way == "key" else p.click("#send")
        p.wait(DONE, 5)
        assert "Stopped here." in last(p, ".note")
    words = last(p)
    p.reload()
    p.wait("document.querySelector('.assistant .note')")
    assert last(p) == words and len(words) > 40
    # What is under way when the page goes is kept as far as it came.
    script(p, [{"content": f"word {i} "} for i in range(3000)], 5)
    say(p, "once more", wait=False)
    p.wait("document.querySelector('.assistant:last-child .prose').textContent.length > 40")
    time.sleep(2.2)
    p.reload()
    p.wait("document.querySelectorAll('.assistant .note').length === 3")
    assert len(last(p)) > 40
    # And a real one ends at the server too.
    say(p, "the sea", wait=False)
    p.wait("document.querySelector('[aria-busy] .prose').textContent.length > 0")
    p.key("Escape")
    s.wait_idle(5)
    fine(s, p)
    p.close()


def edits_and_asks_again(s, b):
    p = opened(s, b)
    script(p, [{"content": "first answer"}])
    say(p, "first question")
    script(p, [{"content": "second answer"}])
    p.click(".assistant [aria-label='Answer again']")
    p.wait("document.querySelector('.assistant .which') && " + DONE)
    assert last(p) == "second answer" and last(p, ".which") == "2/2"
    p.click(".assistant [aria-label='Earlier version']")
    p.wait("document.querySelector('.prose').innerText === 'first answer'")
    script(p, [{"content": "third answer"}])
    p.click("#input")
    p.key("ArrowUp")
    p.wait("document.querySelector('.edit textarea')")
    p.type(" changed")
    p.key("Enter")
    p.wait("document.querySelector('.user .which') && " + DONE)
    assert last(p) == "third answer"
    assert p.js("asked.messages.map((m) => m.content)") == ["first question changed"]
    assert p.js("document.querySelector('.user .which').textContent") == "2/2"
    p.click(".user [aria-label='Earlier version']")
    p.wait("document.querySelector('.user .text').innerText === 'first question'")
    p.reload()
    p.wait("document.querySelector('.user .text')")
    assert p.js("document.querySelector('.user .text').innerText") == "first question"
    assert last(p, ".which") == "2/2"  # the branch with the youngest answer
    p.click(".user [aria-label='Edit and ask again']")
    p.wait("document.querySelector('.edit textarea')")
    p.key("Escape")
    p.wait("document.querySelector('.user .text')")
    fine(s, p)
    p.close()


def asks_with_its_settings(s, b):
    p = opened(s, b)
    p.click("#open-settings")
    p.wait("document.querySelector('[name=system]')")
    for name, text in (("system", "Be brief."), ("temperature", "0.5"), ("top_k", "12"),
                       ("top_p", "0.9"), ("min_p", "0.1"), ("seed", "7"), ("max_tokens", "33")):
        p.js(f"document.querySelector('[name={name}]').focus()")
        p.type(text)
    picture(p, "settings-1280")
    script(p, [{"content": "yes"}])
    say(p, "hello")
    asked = p.js("asked")
    assert asked["messages"] == [{"role": "system", "content": "Be brief."},
                                 {"role": "user", "content": "hello"}], asked
    for name, value in (("temperature", .5), ("top_k", 12), ("top_p", .9), ("min_p", .1),
                        ("seed", 7), ("max_tokens", 33), ("stream", True),
                        ("return_progress", True)):
        assert asked[name] == value, (name, asked)
    # The real server takes them.
    p.reload()
    p.wait("document.querySelector('.assistant')")
    say(p, "again")
    assert not p.js("document.querySelectorAll('.error').length")
    fine(s, p)
    p.close()


def keeps_conversations(s, b):
    p = opened(s, b)
    for name in ("alpha", "beta"):
        script(p, [{"content": f"about {name}"}])
        say(p, name)
        p.key("n", alt=True)
        p.wait("document.querySelector('.empty')")
    titles = "[...document.querySelectorAll('#list .talk a')].map((a) => a.textContent)"
    p.wait("document.querySelectorAll('#list .talk').length === 2")
    assert p.js(titles) == ["beta", "alpha"]
    p.click("#list li:first-child .quiet")
    p.key("Enter")
    p.wait("document.querySelector('#list input')")
    p.type("gamma")
    p.key("Enter")
    p.wait(titles + "[0] === 'gamma'")
    # A file that is written is read again as the same.
    p.js("window.files = []; URL.createObjectURL = (f) => { f.text().then((t) => files.push(t));"
         " return 'blob:none'; }; HTMLAnchorElement.prototype.click = () => {}; true")
    p.click("[aria-label='Export all conversations']")
    p.wait("files.length === 1")
    file = json.loads(p.js("files[0]"))
    assert file["format"] == "tern.conversations" and len(file["conversations"]) == 2
    for _ in range(2):
        p.click("#list li:first-child .quiet")
        p.key("ArrowDown")
        p.key("ArrowDown")
        p.key("Enter")
        time.sleep(0.1)
    p.wait("document.querySelectorAll('#list .talk').length === 0")
    give(p, json.dumps(file))
    p.wait("document.querySelectorAll('#list .talk').length === 2")
    assert sorted(p.js(titles)) == ["alpha", "gamma"]
    p.click("#list li:first-child .quiet")
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        p.key(key)
    p.wait("document.querySelectorAll('#list .talk').length === 1")
    p.click("#toast .link")
    p.wait("document.querySelectorAll('#list .talk').length === 2")
    for bad in ("{", "[]", '{"format": "tern.conversations", "conversations": 3}',
                '{"format": "tern.conversations", "conversations": [null, 1, {"messages": [{}]},'
                ' {"messages": [{"id": "aaaaaaaaaaaaaaaaaaaaaaaa", "role": "user", "text": "x",'
                ' "parent": "aaaaaaaaaaaaaaaaaaaaaaaa"}]}]}'):
        p.js("document.getElementById('toast').hidden = true")
        give(p, bad)
        p.wait("!document.getElementById('toast').hidden")
        assert p.js("document.querySelectorAll('#list .talk').length") == 2
    fine(s, p)
    p.close()


def give(p, text):
    p.js("(() => { const d = new DataTransfer(), e = document.querySelector('input[type=file]');"
         " d.items.add(new File([%s], 'x.json')); e.files = d.files;"
         " e.dispatchEvent(new Event('change')); })()" % json.dumps(text))


def talks_in_two_conversations_at_once(s, b):
    p = opened(s, b)
    script(p, [{"content": f"one{i} "} for i in range(200)], 10)
    say(p, "first", wait=False)
    p.wait("document.querySelector('.prose').textContent.length > 10")
    p.click("#new")
    p.wait("document.querySelector('.empty')")
    script(p, [{"content": "two"}])
    say(p, "second")
    assert last(p) == "two" and p.js("document.querySelectorAll('#list .busy').length") == 1
    p.js("[...document.querySelectorAll('#list a')].find((a) => a.textContent === 'first').click()")
    p.wait("document.querySelector('.user .text').textContent === 'first'")
    p.wait(DONE)
    assert last(p).startswith("one0 one1 ") and last(p).endswith("one199")
    fine(s, p)
    p.close()


def is_quick_with_a_long_conversation(s, b):
    p = opened(s, b)
    turn = "Some **text** with `code`.\n\n```c\nint x = 1;\n```\n\n- a\n- b\n\n| a | b |\n|--|--|\n" \
           "| 1 | 2 |\n"
    messages, parent = [], None
    for i in range(400):
        m = {"id": f"{i:024x}", "parent": parent, "role": "assistant" if i % 2 else "user",
             "text": turn if i % 2 else f"question {i}", "state": "done", "created": 1}
        messages.append(m)
        parent = m["id"]
    give(p, json.dumps({"format": "tern.conversations", "conversations": [
        {"id": "f" * 24, "title": "long", "messages": messages, "leaf": parent}]}))
    p.wait("document.querySelectorAll('#list .talk').length === 1")
    begun = time.monotonic()
    p.click("#list .talk a")
    p.wait("document.querySelectorAll('.message').length === 400")
    took = time.monotonic() - begun
    assert took < 4, took
    assert p.js("(() => { const s = document.getElementById('scroll'); return s.scrollHeight"
                " - s.scrollTop - s.clientHeight; })()") < 100
    p.wait("![...document.querySelectorAll('.prose')].some((e) => !e.firstChild)")
    script(p, [{"content": f"word {i} "} for i in range(100)], 2)
    say(p, "and now")
    assert p.js("asked.messages.length") == 401 and "word 99" in last(p)
    picture(p, "long-1280")
    fine(s, p)
    p.close()
    return f"opened in {took:.2f} s"


def paints_a_long_answer_in_linear_time(s, b):
    p = opened(s, b)
    told = []
    for name, line in (("code", "    x[{0}] = f(x[{0} - 1], {0});\n"), ("text", "Word {0} of it.\n\n")):
        head = "```c\n" if name == "code" else ""
        pieces = [{"content": head}] if head else []
        pieces += [{"content": line.format(i)} for i in range(8000)]
        script(p, pieces)
        p.js("window.slow = []; new PerformanceObserver((l) => l.getEntries().forEach((e) =>"
             " slow.push(e.duration))).observe({type: 'longtask'}); true")
        begun = time.monotonic()
        say(p, name, wait=False)
        p.wait(DONE, 30)
        took = time.monotonic() - begun
        assert took < 15, took
        assert "7999" in last(p)[-40:]
        told.append(f"{name} {took:.1f} s, longest task {p.js('Math.max(0, ...slow)'):.0f} ms")
    fine(s, p)
    p.close()
    return ", ".join(told)


MARKDOWN = """# A title

Some *text*, **bold**, ~~gone~~ and `code`, a [link](https://example.org/a?b=c) and
https://example.org/bare as it is. A reference [there][r].

[r]: http://example.net/ "Title"

1. one
2. two

   with a paragraph

   ```py
   def f(x):  # in a list
       return "text" + str(1.5)
   ```

10. ten

- a
  - b
    - c

* * *

> quoted
> > twice

| left | right | middle |
|:--|--:|:-:|
| 1 | 2 | 3 |
| a | b | `c` |

Setext
======

~~~html
<b>not markup</b> ```
~~~

    indented code

````
```
inner
```
````

Line one\\
line two  
line three &amp; &copy; &#35;

```
never closed
  ``
"""


def is_the_same_piece_by_piece_and_at_once(s, b):
    p = opened(s, b)
    for size in (1, 3, 17, 400):
        text = MARKDOWN if size != 3 else MARKDOWN.replace("\n", "\r\n")
        script(p, [{"content": text[i:i + size]} for i in range(0, len(text), size)],
               1 if size == 1 else 0 if size == 400 else 2)
        say(p, f"pieces of {size}")
        if size == 1:
            picture(p, "markdown-1280")
    streamed = p.js("[...document.querySelectorAll('.prose')].map((e) => e.innerHTML)")
    p.reload()
    p.wait("document.querySelectorAll('.prose').length === 4")
    whole = p.js("[...document.querySelectorAll('.prose')].map((e) => e.innerHTML)")
    for i, (a, c) in enumerate(zip(streamed, whole)):
        at = next((k for k in range(min(len(a), len(c))) if a[k] != c[k]), 0)
        assert a == c, (i, at, a[at - 80:at + 80], c[at - 80:at + 80])
    fine(s, p)
    p.close()


# --- hostile output ---

def listener():
    """A port where nobody may ever call, and who did."""
    door, called = socket.create_server(("127.0.0.1", 0)), []

    def wait():
        while True:
            try:
                called.append(door.accept()[1])
            except OSError:
                return

    threading.Thread(target=wait, daemon=True).start()
    return door, called


HOSTILE = """<img src=x onerror="window.pwned=1"><img src="http://HOST/a.png">

![picture](http://HOST/b.png) ![](http://HOST/c.png "t") ![x](//HOST/d.png)
![d](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+)

[![in a link](http://HOST/e.png)](http://HOST/f)

<script>window.pwned = 2</script><style>body{background:url(http://HOST/g)}</style>
<iframe src="http://HOST/h"></iframe><svg onload="window.pwned=3"><a xlink:href="javascript:1">
<link rel=stylesheet href=http://HOST/i><meta http-equiv=refresh content="0;url=http://HOST/j">
<base href="http://HOST/"><form action="http://HOST/k"><button>send</button></form>
<video src=http://HOST/l autoplay></video><div style="background:url(http://HOST/m)">x</div>

[js](javascript:window.pwned=4) [js2](JaVaScRiPt:alert(1)) [vb](vbscript:x)
[enc](javascript&colon;window.pwned=5) [tab](java\tscript:window.pwned=6)
[data](data:text/html,<script>window.pwned=7</script>) [file](file:///etc/passwd)
[own](/v1/models) [rel](evil.html) [proto](//HOST/n) [blob](blob:http://HOST/o)
<javascript:window.pwned=8> <http://HOST/p> http://HOST/q
[good](http://HOST/r) [quote](http://HOST/s"onmouseover="window.pwned=9)
[ref]

[ref]: javascript:window.pwned=10

```html"onclick="window.pwned=11
<script>window.pwned = 12</script>
```

```<img src=x onerror=window.pwned=13>
x
```

| <img src=x onerror=window.pwned=14> | b |
|:--|--:|
| ![t](http://HOST/t) | <script>1</script> |

<math><mi xlink:href="javascript:window.pwned=15">x</mi></math>
<template><img src=x onerror="window.pwned=16"></template>
</div></article></main><plaintext>
"""


def lets_no_output_do_anything(s, b):
    door, called = listener()
    host = "127.0.0.1:%d" % door.getsockname()[1]
    text = HOSTILE.replace("HOST", host)
    huge = "| a | b |\n|--|--|\n" + "| x | y |\n" * 3000
    nested = [">" * 3000 + " deep\n", "- " * 500 + "x\n", "[" * 5000 + "\n", "*a " * 5000 + "\n",
              "`" * 3001 + "\n", "x" * 100000 + "\n"]
    p = opened(s, b)
    for pieces in ([text], [text[i:i + 7] for i in range(0, len(text), 7)], [huge], nested):
        script(p, [{"content": t} for t in pieces], 0 if len(pieces) < 9 else 1)
        say(p, "do your worst", wait=False)
        p.wait(DONE, 40)
    # What was thought, asked and named is no markup either.
    script(p, [{"reasoning_content": text}, {"content": "x"}])
    say(p, text)
    p.click(".assistant:last-child summary")
    p.reload()
    p.wait("document.querySelectorAll('.assistant').length === 5")
    time.sleep(0.3)
    assert p.js("window.pwned") is None
    assert p.js("document.querySelectorAll('img, iframe, video, style:not(head style), link:not("
                "head link), base, form, meta:not(head meta), .prose svg:not(.icon), .prose [style],"
                " .prose [onclick], .prose [onmouseover], .prose [onerror]').length") == 0
    for href in p.js("[...document.querySelectorAll('.prose a')].map((a) => a.href)"):
        assert href.startswith((f"http://{host}/", "mailto:")), href
    for a in p.js("[...document.querySelectorAll('.prose a[href]')].map((a) => [a.rel, a.target,"
                  " a.title, a.textContent + (a.nextElementSibling || a).textContent])"):
        assert "noopener" in a[0] and "noreferrer" in a[0] and a[1] == "_blank", a
        assert a[2].startswith("http") and host in a[3], a
    assert not p.js("document.querySelector('#list [href*=javascript]')")
    assert not called, called
    p.problems[:] = [x for x in p.problems if "Permissions" in x]
    fine(s, p)
    # The policy holds even if all else failed.
    for attempt in ("new Image().src = 'http://%s/z'" % host,
                    "fetch('http://%s/z').catch(() => 0)" % host,
                    "navigator.sendBeacon('http://%s/z')" % host,
                    "document.head.append(Object.assign(document.createElement('script'),"
                    " {text: 'window.pwned = 20'}))",
                    "document.body.setAttribute('onclick', 'window.pwned = 21')"):
        try:
            p.js(attempt)
        except Broken:
            pass
    p.click("#title")
    time.sleep(0.2)
    try:
        html = p.js("document.body.insertAdjacentHTML('beforeend', '<b id=raw>x</b>')"
                    " || !!document.getElementById('raw')")
    except Broken:
        html = False
    assert not html and p.js("window.pwned") is None and not called, (html, called)
    door.close()
    p.close()


# --- what else it shows ---

def folds_thinking_and_shows_progress(s, b):
    p = opened(s, b)
    script(p, [{"prompt_progress": {"total": 2000, "cache": 512, "processed": n, "time_ms": n}}
               for n in range(512, 2001, 31)]
           + [{"reasoning_content": f"thought {i} "} for i in range(40)]
           + [{"content": f"word {i} "} for i in range(40)], 20)
    say(p, "think", wait=False)
    p.wait("document.querySelector('.reading')")
    picture(p, "reading-1280")
    assert "of 2,000 tokens, 512 known already" in p.js(
        "document.querySelector('.reading').textContent")
    p.wait("document.querySelector('.thinking')")
    assert not p.js("document.querySelector('.thinking').open")
    assert not p.js("document.querySelector('.reading')")
    p.wait(DONE)
    assert p.js("document.querySelector('.thinking summary').textContent").startswith("Thought")
    assert "thought" not in last(p)
    p.click(".thinking summary")
    assert p.js("document.querySelector('.thinking').open")
    assert "thought 39" in p.js("document.querySelector('.thought').innerText")
    assert "16 of 40 reused" in last(p, ".figures")
    assert p.js("asked.messages.length") == 1
    script(p, [{"content": "x"}])
    say(p, "next")
    assert "thought" not in json.dumps(p.js("asked.messages"))
    fine(s, p)
    p.close()


def tells_what_went_wrong(s, b):
    p = opened(s, b)
    say(p, "word " * 9000)
    assert "context" in last(p, ".error"), last(p, ".error")
    assert p.js("document.querySelector('.error button').textContent") == "Try again"
    script(p, [{"content": "better"}])
    p.click(".error button")
    p.wait(DONE + " && document.querySelector('.prose').innerText === 'better'")
    assert not p.js("document.querySelector('.which')")
    p.js("window.fetch = () => Promise.reject(new TypeError('down'))")
    say(p, "hello?")
    assert "does not answer" in last(p, ".error")
    p.wait("!document.getElementById('notice').hidden")
    p.js("window.fetch = realFetch")
    p.wait("document.getElementById('notice').hidden")
    # One that is busy is asked again.
    p.js("(() => { let n = 0; window.fetch = (u, o) => u === '/v1/chat/completions' && n++ < 2 ?"
         " Promise.resolve(new Response('{\"error\": {\"message\": \"full\"}}', {status: 429,"
         " headers: {'Retry-After': '0.05'}})) : realFetch(u, o); })()")
    p.click("#new")
    settings_now = "localStorage.setItem('tern.settings', '{\"max_tokens\": 4}')"
    p.js(settings_now)
    say(p, "the sea")
    assert not p.js("document.querySelectorAll('.error').length")
    p.problems[:] = [x for x in p.problems if "400" not in x]
    fine(s, p)
    p.close()


def asks_for_a_key(s, b):
    keyed = Server(tern, MODEL, "-c", "512", "--chat-template", "chatml", "--api-key", "secret")
    p = b.page()
    p.go(f"http://127.0.0.1:{keyed.port}/")
    p.wait("document.getElementById('dialog').open")
    assert p.js("document.activeElement.id") == "key"
    assert p.js("document.getElementById('key').type") == "password"
    picture(p, "key-1280")
    p.type("wrong")
    p.key("Enter")
    p.wait("document.querySelector('.bad')")
    p.type("secret")
    p.key("Enter")
    p.wait("document.querySelector('.empty dl')")
    p.js("localStorage.setItem('tern.settings', '{\"max_tokens\": 8}')")
    p.reload()  # it is known in this window
    p.wait("document.querySelector('.empty dl')")
    say(p, "the sea")
    assert not p.js("document.querySelectorAll('.error').length")
    assert "secret" not in p.js("JSON.stringify(localStorage)")
    assert all("secret" not in u for u in p.requests)
    p.problems[:] = [x for x in p.problems if "401" not in x]
    fine(keyed, p)
    p.close()
    assert keyed.stop() == 0


def shows_the_machine(s, b):
    p = opened(s, b)
    asked = lambda: sum(u.endswith("/pool") for u in p.requests)
    settings(p, max_tokens=60)
    say(p, "the sea was " * 12)
    assert asked() == 0  # nobody looks
    p.click("#open-machine")
    p.wait("document.querySelector('.legend')")
    p.wait("document.querySelector('.page canvas[aria-label*=blocks]')")
    label = p.js("document.querySelector('.page canvas[aria-label*=blocks]').ariaLabel")
    assert "kept for reuse" in label and "free" in label, label
    colours = p.js("(() => { const c = document.querySelector('canvas[aria-label*=blocks]');"
                   " const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
                   " const s = new Set(); for (let i = 0; i < d.length; i += 4) if (d[i + 3] === 255)"
                   " s.add(d[i] + ',' + d[i + 1] + ',' + d[i + 2]); return s.size; })()")
    assert colours >= 2, colours
    assert "of 4,096 tokens" in p.js("document.getElementById('panel').innerText")
    picture(p, "machine-1280")
    p.click("[aria-label='Close panel']")
    p.wait("document.getElementById('panel').hidden")
    time.sleep(0.2)
    before = asked()
    time.sleep(1.3)
    assert asked() == before
    fine(s, p)
    p.close()


# --- how it looks, and for whom ---

CONTRAST = """(() => {
    const value = (name) => {
        const e = document.createElement('i');
        e.style.color = `var(--${name})`;
        document.body.append(e);
        const c = getComputedStyle(e).color.match(/[\\d.]+/g).map(Number);
        e.remove();
        const l = c.slice(0, 3).map((x) => (x /= 255) <= .03928 ? x / 12.92
            : ((x + .055) / 1.055) ** 2.4);
        return .2126 * l[0] + .7152 * l[1] + .0722 * l[2];
    };
    const low = [];
    for (const [front, ...backs] of [
        ['text', 'ground', 'side', 'raised', 'sunken', 'hover', 'code', 'warm-soft', 'accent-soft'],
        ['soft', 'ground', 'side', 'raised', 'sunken', 'hover'],
        ['faint', 'ground', 'side', 'raised', 'code', 'hover'],
        ['accent', 'ground', 'side', 'raised', 'accent-soft', 'warm-soft'],
        ['on-accent', 'accent'], ['warm', 'ground', 'side', 'raised'], ['ground', 'text'],
        ['c-comment', 'code'], ['c-text', 'code'], ['c-number', 'code'], ['c-word', 'code']])
        for (const back of backs) {
            const [a, b] = [value(front), value(back)].sort((x, y) => y - x);
            const ratio = (a + .05) / (b + .05);
            if (ratio < 4.5)
                low.push(`${front} on ${back}: ${ratio.toFixed(2)}`);
        }
    return low;
})()"""


def is_light_and_dark(s, b):
    p = opened(s, b)
    ground = "getComputedStyle(document.body).backgroundColor"
    grounds = []
    for dark in (False, True):
        p.media(dark)
        p.wait(f"document.documentElement.dataset.theme === '{'dark' if dark else 'light'}'")
        assert p.js(CONTRAST) == [], p.js(CONTRAST)
        grounds.append(p.js(ground))
    assert grounds[0] != grounds[1]
    p.click("#tools .quiet")  # light, whatever the system has
    p.wait("document.documentElement.dataset.theme === 'light'")
    p.reload()
    p.wait("document.documentElement.dataset.theme === 'light'")
    p.click("#tools .quiet")
    p.media(False)
    p.wait("document.documentElement.dataset.theme === 'dark'")
    p.click("#tools .quiet")
    p.wait("document.documentElement.dataset.theme === 'light'")
    fine(s, p)
    p.close()


def fits_a_phone(s, b):
    for width in (390, 320):
        p = opened(s, b, width=width, height=780 if width == 390 else 568, scale=2, touch=True)
        narrow = f"document.documentElement.scrollWidth <= {width}" \
                 f" && document.getElementById('scroll').scrollWidth <= {width}"
        assert p.js(narrow)
        if width == 390:
            picture(p, "empty-390")
        script(p, [{"reasoning_content": "hm " * 50}, {"content": MARKDOWN + "\n```\n\n" + "w" * 300}])
        say(p, "A question that is long enough to go over more than one line, and has "
               "averyveryveryveryveryveryveryveryverylongwordthatmustbebroken in it")
        assert p.js(narrow), "wider than the screen"
        p.js("document.getElementById('scroll').scrollTop = 0")
        time.sleep(0.1)
        picture(p, f"talk-{width}")
        assert p.js("document.getElementById('side').getBoundingClientRect().right") <= 0
        p.click("#open-side")
        p.wait("document.getElementById('side').getBoundingClientRect().left === 0")
        picture(p, f"side-{width}")
        p.click("#list .talk a")
        p.wait("document.getElementById('side').getBoundingClientRect().right <= 0")
        p.click("#open-machine")
        p.wait("document.querySelector('.legend')")
        assert p.js("document.getElementById('panel').getBoundingClientRect().width") == width
        assert p.js("document.getElementById('panel').scrollWidth") <= width
        picture(p, f"machine-{width}")
        p.key("Escape")
        p.wait("document.getElementById('panel').hidden")
        small = p.js("[...document.querySelectorAll('button')].filter((e) => { const r ="
                     " e.getBoundingClientRect(); return r.width && (r.width < 24 || r.height < 24)"
                     " && !e.classList.contains('link'); }).map((e) => e.outerHTML)")
        assert not small, small
        fine(s, p)
        p.close()


def can_be_used_by_keys_and_heard(s, b):
    p = opened(s, b)
    p.js("document.activeElement.blur()")
    p.key("/")
    assert p.js("document.activeElement.id + '|' + document.activeElement.value") == "input|"
    p.type("one")
    p.key("Enter", shift=True)
    p.js("document.execCommand('insertText', false, '\\n')") if p.js(
        "document.getElementById('input').value") == "one" else None
    p.type("two")
    script(p, [{"content": "A first paragraph.\n\nA second "}, {"content": "one.\n\n```c\nint x;\n```"}]
           + [{"content": f" w{i}"} for i in range(30)], 5)
    p.js("window.heard = []; new MutationObserver(() => heard.push(document.getElementById('said')"
         ".textContent)).observe(document.getElementById('said'), {childList: true}); true")
    p.key("Enter")
    p.wait("document.querySelector('.assistant')")
    p.wait(DONE)
    assert p.js("document.querySelector('.user .text').textContent") == "one\ntwo"
    heard = p.js("heard")
    assert any(h.startswith("A first paragraph.") for h in heard) and heard[-1].startswith("The answer is complete"), heard
    assert len(heard) < 10, heard  # not each token
    p.click("#open-settings")
    p.ask("Accessibility.enable")
    nodes = p.ask("Accessibility.getFullAXTree")["nodes"]
    unnamed = []
    for n in nodes:
        role = n.get("role", {}).get("value")
        if role in ("button", "link", "textbox", "searchbox", "spinbutton", "combobox", "tab",
                    "article", "log", "navigation", "tabpanel", "Canvas", "image") and \
                not n.get("ignored") and not n.get("name", {}).get("value"):
            unnamed.append((role, n.get("properties")))
    assert not unnamed, unnamed[:5]
    # Where the focus is can be seen, wherever it goes.
    p.js("document.activeElement.blur()")
    places = set()
    for _ in range(24):
        p.key("Tab")
        seen = p.js("(() => { const e = document.activeElement, c = getComputedStyle(e);"
                    " const f = getComputedStyle(e.closest('#composer') || e); return [e.id || e."
                    "ariaLabel || e.textContent || e.tagName, c.outlineStyle !== 'none' ||"
                    " f.borderColor !== 'rgba(0, 0, 0, 0)']; })()")
        assert seen[1], seen
        places.add(seen[0])
    assert len(places) > 12, places
    assert p.js("document.documentElement.lang") == "en"
    fine(s, p)
    p.close()


TESTS = [comes_whole_and_lets_nothing_out, tells_of_its_pool, types_streams_and_keeps, stops,
         edits_and_asks_again, asks_with_its_settings, keeps_conversations,
         talks_in_two_conversations_at_once, is_quick_with_a_long_conversation,
         paints_a_long_answer_in_linear_time, is_the_same_piece_by_piece_and_at_once,
         lets_no_output_do_anything, folds_thinking_and_shows_progress, tells_what_went_wrong,
         asks_for_a_key, shows_the_machine, is_light_and_dark, fits_a_phone,
         can_be_used_by_keys_and_heard]

only, failed = sys.argv[3:], 0
server = Server(tern, MODEL, "-c", "4096", "-np", "4", "--chat-template", "chatml", "--alias",
                "tiny.gguf")
browser = Browser(program())
try:
    for test in TESTS:
        if only and test.__name__ not in only:
            continue
        begun = time.monotonic()
        try:
            more = test(server, browser)
            print(f"ok {test.__name__} ({time.monotonic() - begun:.2f} s)",
                  f": {more}" if more else "", flush=True)
        except Exception as e:
            failed += 1
            where = e.__traceback__
            while where.tb_next and "check_page" in where.tb_next.tb_frame.f_code.co_filename:
                where = where.tb_next
            print(f"FAILED {test.__name__}: line {where.tb_lineno}: {type(e).__name__}: "
                  f"{str(e)[:1500]}", flush=True)
finally:
    browser.close()
    if server.stop() != 0:
        print("FAILED: the server's exit code", server.said[-300:])
        failed += 1
sys.exit(failed > 0)
