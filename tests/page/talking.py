"""The page as it is sent, and what people do with it."""
import gzip
import json
import threading
import time

from server import Server
from using import (DONE, fine, give, last, opened, picture, reloaded, say, script,
                   settings)


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


def adds_up(pool):
    """Blocks are of one use each; cells are as few as show them all, and at most 4,096."""
    for one in pool["pools"]:
        assert one["blocks"] == one["free"] + one["kept"] + one["used"] + one["shared"], one
        assert one["each"] == -(-one["blocks"] // 4096)
        assert len(one["cells"]) == -(-one["blocks"] // one["each"])
        assert set(one["cells"]) <= set(".kus")


def tells_of_its_pool(s, b):
    s.good("/v1/completions", {"prompt": "the sea was " * 20, "max_tokens": 2})
    begun = time.monotonic()
    while not (pool := s.ask("GET", "/pool")[2])["pools"][0]["kept"] or pool["pools"][0]["used"]:
        assert time.monotonic() - begun < 5, pool["pools"][0]
    adds_up(pool)
    assert pool["running"] == 0 and pool["sequences"] == 4 and pool["generated_tokens"] > 0
    # What runs together from one beginning is seen to share it.
    body = {"prompt": "the sea was " * 20, "max_tokens": 600, "ignore_eos": True, "n": 3}
    n = s.good("/v1/completions", {**body, "max_tokens": 1, "n": 1})["usage"]["prompt_tokens"]
    asked = threading.Thread(target=s.good, args=("/v1/completions", body))
    asked.start()
    seen = set()
    while asked.is_alive():
        pool = s.ask("GET", "/pool")[2]
        adds_up(pool)
        seen.add(pool["pools"][0]["shared"])
        time.sleep(0.01)
    asked.join()
    assert max(seen) == n // 16, (seen, n)  # whole blocks of the prompt
    # A cell of two blocks, one of them free, shows the other's use.
    own = Server(s.tern, s.model, "-c", 256, "--kv-tokens", 16 * 8192)
    own.good("/v1/completions", {"prompt": [5] * 82, "max_tokens": 1})
    own.wait_idle()
    while not (one := own.ask("GET", "/pool")[2]["pools"][0])["kept"]:
        time.sleep(0.01)
    adds_up({"pools": [one]})
    assert one["each"] == 2 and one["kept"] == 5 and one["cells"].count("k") >= 3, one
    assert own.stop() == 0


# --- talking ---

def types_streams_and_keeps(s, b):
    p = opened(s, b)
    settings(p, max_tokens=200, temperature=0)
    assert p.js("document.activeElement.id") == "input"
    p.slow(12000)
    p.js("window.lengths = []; new MutationObserver(() => lengths.push(document.querySelector("
         "'.prose').textContent.length)).observe(document.getElementById('thread'),"
         " {subtree: true, childList: true}); true")
    say(p, "the sea was", wait=False)
    p.wait("document.querySelector('#gauge .rate')")  # while it is written
    p.wait(DONE + " && !document.querySelector('#gauge .rate')")
    p.slow(-1)
    assert p.js("new Set(lengths).size") > 2, p.js("lengths")
    text = last(p)
    assert text and "tokens" in last(p, ".figures")
    assert p.js("document.querySelector('.user .text').textContent") == "the sea was"
    assert "#" in p.js("location.href") and p.js("document.title") == "the sea was – Tern"
    reloaded(p)
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


def long_answer(s, text, n):
    """A seed: random weights end some answers at once."""
    for seed in range(50):
        got = s.good("/v1/chat/completions", {"messages": [{"role": "user", "content": text}],
                                              "max_tokens": n, "seed": seed})
        if got["usage"]["completion_tokens"] == n:
            return seed
    raise AssertionError("all answers are short")


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
    reloaded(p)
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
    p.close()
    p = opened(s, b)
    settings(p, max_tokens=700, seed=long_answer(s, "the sea", 700))
    p.slow(12000)  # the server keeps so much for one who reads slowly
    say(p, "the sea", wait=False)
    p.wait("(document.querySelector('[aria-busy] .prose') || {textContent: ''}).textContent")
    p.key("Escape")
    p.slow(-1)
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
    reloaded(p)
    p.wait("document.querySelector('.user .text')")
    # What is not painted yet has no innerText.
    assert p.js("document.querySelector('.user .text').textContent") == "first question"
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
    reloaded(p)
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


def takes_text_files(s, b):
    p = opened(s, b)
    p.type("Read this.")
    files = ("(() => { const d = new DataTransfer(); for (const [n, t] of %s) d.items.add(new File("
             "[t], n)); return d; })()")
    choose = ("(() => { const e = document.getElementById('attach'); e.files = " + files
              + ".files; e.dispatchEvent(new Event('change')); })()")
    text = "int x;\n" * 30 + "/* ```` */\n\n"
    p.js(choose % json.dumps([["a.c", text]]))
    written = "Read this.\n\na.c:\n\n`````c\n" + text.rstrip() + "\n`````\n"
    p.wait("document.getElementById('input').value.length > 40")
    assert p.js("document.getElementById('input').value") == written
    assert p.js("document.getElementById('latest').hidden")
    # One that is dropped does not take the page's place; what is no text is not taken.
    drop = ("(() => { let all = true; for (const name of ['dragover', 'drop']) { const e = new "
            "DragEvent(name, {bubbles: true, cancelable: true, dataTransfer: " + files + "});"
            " document.getElementById('thread').dispatchEvent(e); all &&= e.defaultPrevented;"
            " window.marked = (window.marked || '') + document.querySelectorAll("
            "'.dropping').length; } return all; })()")
    assert p.js(drop % json.dumps([["no-end", "plain"]])) is True
    written += "\nno-end:\n\n```\nplain\n```\n"
    p.wait("document.getElementById('input').value.includes('plain')")
    assert p.js("document.getElementById('input').value") == written
    assert p.js("marked") == "10"
    for bad in ("a\0b", "x" * (512 * 1024 + 1)):
        p.js("document.getElementById('toast').hidden = true")
        p.js(choose % json.dumps([["bad.bin", bad]]))
        p.wait("!document.getElementById('toast').hidden")
        assert "bad.bin is not a text file" in p.js("document.getElementById('toast').innerText")
    assert p.js("document.getElementById('input').value") == written
    # It is sent as it is seen, and a long message is folded.
    script(p, [{"content": "yes"}])
    p.key("Enter")
    p.wait("document.querySelector('.assistant')")
    p.wait(DONE)
    assert p.js("asked.messages[0].content") == written.strip()
    height = "document.querySelector('.user .text').offsetHeight"
    assert p.js(height) < 300 and p.js("document.querySelector('.fold').ariaExpanded") == "false"
    top = p.js("document.getElementById('scroll').scrollTop")
    p.click(".fold")
    p.js("new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))")
    assert p.js("document.getElementById('scroll').scrollTop") == top  # where the reader was
    assert p.js(height) > 600 and p.js("document.querySelector('.fold').ariaExpanded") == "true"
    p.click(".fold")
    assert p.js(height) < 300
    script(p, [{"content": "yes"}])
    say(p, "short")
    assert p.js("document.querySelectorAll('.fold').length") == 1
    fine(s, p)
    p.close()
