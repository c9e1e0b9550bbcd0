"""What models write: long, unfinished, hostile."""
import json
import socket
import threading
import time

from browser import Broken
from using import DONE, fine, give, last, opened, picture, reloaded, say, script


def is_quick_with_a_long_conversation(s, b):
    p = opened(s, b)
    turn = "Some **text** with `code`.\n\n```c\nint x = 1;\n```\n\n- a\n- b\n\n| a | b |\n" \
           "|--|--|\n| 1 | 2 |\n"
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
    for name, line in (("code", "    x[{0}] = f(x[{0} - 1], {0});\n"),
                       ("text", "Word {0} of it.\n\n")):
        head = "```c\n" if name == "code" else ""
        pieces = [{"content": head}] if head else []
        pieces += [{"content": line.format(i)} for i in range(8000)]
        script(p, pieces)
        p.js("window.slow = []; new PerformanceObserver((l) => l.getEntries().forEach((e) =>"
             " slow.push(e.duration))).observe({type: 'longtask'}); true")
        begun = time.monotonic()
        say(p, name, wait=False)
        p.wait(DONE, 60)
        took = time.monotonic() - begun
        assert took < 30, took
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


HALVES = ["1. one\n\n", "2", ". two\n\nbefore\n\n- a\n\n", "-", " b\n\nText", "\n=",
          "==\n\n| a | b |", "\n|-",
          "-|--|\n| 1 | 2 |\n\n``", "`c\nint x;\n``", "`", "\nafter\n\n>", " quoted\n", ">",
          " on"]


def is_the_same_piece_by_piece_and_at_once(s, b):
    p = opened(s, b)
    for size in (1, 3, 17, 400):
        text = MARKDOWN if size != 3 else MARKDOWN.replace("\n", "\r\n")
        script(p, [{"content": text[i:i + size]} for i in range(0, len(text), size)],
               1 if size == 1 else 0 if size == 400 else 2)
        say(p, f"pieces of {size}")
        if size == 1:
            picture(p, "markdown-1280")
    # Each is painted while it can still become something else.
    script(p, [{"content": t} for t in HALVES], 110)
    say(p, "halves")
    streamed = p.js("[...document.querySelectorAll('.prose')].map((e) => e.innerHTML)")
    reloaded(p)
    p.wait("document.querySelectorAll('.prose').length === 5")
    whole = p.js("[...document.querySelectorAll('.prose')].map((e) => e.innerHTML)")
    for i, (a, c) in enumerate(zip(streamed, whole)):
        at = next((k for k in range(min(len(a), len(c))) if a[k] != c[k]), 0)
        assert a == c, (i, at, a[at - 80:at + 80], c[at - 80:at + 80])
    fine(s, p)
    p.close()


def shows_in_time_what_no_reader_needs(s, b):
    """What takes the Markdown of others minutes, or a browser's layout; and it says what it is."""
    p = opened(s, b)
    row = "|x" * 2000 + "|\n"
    for name, text in (("pictures", "![a](" * 20000), ("marks", "a" + "\u0301" * 100000),
                       ("columns", row + row.replace("x", "-") + row * 10)):
        script(p, [{"content": text[i:i + 1000]} for i in range(0, len(text), 1000)])
        begun = time.monotonic()
        say(p, name)
        assert time.monotonic() - begun < 10, (name, time.monotonic() - begun)
        if name == "marks":
            assert last(p) == "a" + "\u0301" * 24, len(last(p))
    assert p.js("document.querySelectorAll('th').length") == 100
    # Marks that come one at a time, also in code; and what shows nothing, or turns text around.
    script(p, [{"content": c} for c in "a" + "\u0301" * 100 + "b\n```c\nx" + "\u0301" * 100
               + "\u202ey\n```\nbell \x07 \x1b[31m"])
    say(p, "turns")
    text = last(p)
    assert text.count("\u0301") == 48 and "[U+202E]y" in text, text
    assert "\u202e" not in text and "bell \u2407 \u241b[31m" in text, text
    begun = time.monotonic()
    reloaded(p)
    p.wait("document.querySelectorAll('.assistant .prose').length === 4 && "
           "![...document.querySelectorAll('.prose')].some((e) => !e.firstChild)", 20)
    assert last(p) == text
    fine(s, p)
    p.close()


def says_where_links_lead(s, b):
    p = opened(s, b)
    links = {"[here](http://a.example/b)": " (a.example)", "[a.example](http://a.example/b)": "",
             "http://a.example/b": "", "[http://a.example/c](http://a.example/b)": "",
             "[http://good.example/a.example](http://a.example/b)": " (a.example)",
             "[good.example, not a.example](http://a.example/b)": " (a.example)",
             "[elpmaxe.a\u202e](http://a.example/b)": " (a.example)",
             "[me](mailto:a@b.example)": " (a@b.example)"}
    script(p, [{"content": "\n\n".join(links)}])
    say(p, "where to?")
    told = p.js("[...document.querySelectorAll('.prose a')].map((a) => a.nextElementSibling ?"
                " a.nextElementSibling.textContent : '')")
    assert told == list(links.values()), told
    assert p.js("getComputedStyle(document.querySelector('.prose a')).unicodeBidi") == "isolate"
    fine(s, p)
    p.close()


def begins_whatever_was_noted(s, b):
    """What small things lie in the browser may be another version's, or anybody's."""
    p = opened(s, b)
    for value in ("null", "5", "[]", '{"temperature": "x", "stop": 5, "thinking": {}}', "{"):
        p.js("localStorage.clear(); for (const n of ['settings', 'system', 'draft', 'panel',"
             " 'side', 'theme']) localStorage.setItem('tern.' + n, %s); true" % json.dumps(value))
        p.go(f"http://127.0.0.1:{s.port}/")
        p.reload()
        p.wait("document.querySelector('.empty dl')")
        script(p, [{"content": "hi"}])
        say(p, "hello")
        assert last(p) == "hi" and p.js("JSON.stringify(asked.messages)") == \
            '[{"role":"user","content":"hello"}]', value
        fine(s, p)
    p.js("localStorage.clear(); true")
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
    huge = "| a | b |\n|--|--|\n" + "| x | y |\n" * 1500
    nested = [">" * 3000 + " deep\n", "- " * 500 + "x\n", "[" * 3000 + "\n", "*a " * 3000 + "\n",
              "`" * 3001 + "\n", "x" * 100000 + "\n"]
    p = opened(s, b)
    for pieces in ([text], [text[i:i + 7] for i in range(0, len(text), 7)], [huge], nested):
        script(p, [{"content": t} for t in pieces], 0 if len(pieces) < 9 else 1)
        say(p, "do your worst", wait=False)
        p.wait(DONE, 60)
    # What was thought, asked and named is no markup either.
    script(p, [{"reasoning_content": text}, {"content": "x"}])
    say(p, text)
    p.click(".assistant:last-child summary")
    reloaded(p)
    p.wait("document.querySelectorAll('.assistant').length === 5")
    time.sleep(0.3)
    assert p.js("window.pwned") is None
    shown = p.js("document.querySelector('.assistant .prose').textContent")
    for markup in ("<img src=x onerror", "<script>window.pwned = 2</script>", "<iframe src="):
        assert markup in shown, markup  # as it was written: none of it was taken for HTML
    assert p.js("document.querySelectorAll('img, iframe, video, style:not(head style), link:not("
                "head link), base, form, meta:not(head meta), .prose svg:not(.icon),"
                " .prose [style],"
                " .prose [onclick], .prose [onmouseover], .prose [onerror]').length") == 0
    links = p.js("[...document.querySelectorAll('.prose a')].map((a) => a.href)")
    assert f"http://{host}/b.png" in links  # a picture became a link
    for href in links:
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
