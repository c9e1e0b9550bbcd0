"""Answers that go on: from where they were cut, and from another window."""
import json
import re
import time

from browser import Page
from using import (DONE, KEPT, fine, give, last, opened, picture, reloaded, say, script,
                   settings)


def kept(p):
    """The messages of the one conversation that is kept, by their text."""
    (talk,) = p.js(KEPT)
    return {m["text"]: m for m in talk["messages"]}


# --- from where it was cut ---

def goes_on_with_what_was_cut(s, b):
    p = opened(s, b)
    settings(p, max_tokens=8, temperature=0)
    say(p, "the sea was")
    assert "Cut off" in last(p, ".note"), last(p, ".note")
    (first,) = [m for m in kept(p).values() if m["role"] == "assistant"]
    assert first["state"] == "length" and first["stats"]["tokens"] == 8
    picture(p, "cut-1280")
    p.click(".note .link")
    p.wait(DONE + " && document.querySelector('.figures').textContent.startsWith('16 ')")
    answer = s.good("/v1/chat/completions", {
        "messages": [{"role": "user", "content": "the sea was"},
                     {"role": "assistant", "content": first["text"]}],
        "max_tokens": 8, "temperature": 0})
    more, usage = answer["choices"][0]["message"]["content"], answer["usage"]
    (second,) = [m for m in kept(p).values() if m["role"] == "assistant"]
    assert more and second["text"] == first["text"] + more, (first["text"], second["text"], more)
    assert second["id"] == first["id"]
    assert second["stats"]["prompt"] + second["stats"]["tokens"] == usage["total_tokens"]
    assert not p.js("document.querySelector('.error')")
    # What was thought and said is what is gone on with; only the last answer can be.
    script(p, [{"reasoning_content": "well "}] * 3
           + [{"content": f"word{i} "} for i in range(3000)], 5)
    say(p, "go on", wait=False)
    p.wait("document.querySelector('.assistant:last-child .prose').textContent.length > 40")
    p.key("Escape")
    p.wait(DONE)
    words = last(p)
    assert p.js("document.querySelectorAll('.note .link').length") == 1
    script(p, [{"content": "END"}], 300)
    p.click(".note .link")
    p.wait("document.querySelector('[aria-busy] .dots') && "
           "document.querySelector('[aria-busy] .prose').textContent.length > 40")
    p.wait(DONE)
    assert last(p) == words + " END"
    assert not p.js("document.querySelector('.assistant:last-child .note')")
    asked = p.js("asked")
    assert asked["continue_final_message"] is True and asked["messages"][-1] == {
        "role": "assistant", "content": words + " ", "reasoning_content": "well well well "}
    assert p.js("document.querySelectorAll('.assistant').length") == 2
    assert not p.js("document.querySelectorAll('.which').length")
    reloaded(p)
    p.wait("document.querySelectorAll('.assistant .figures').length === 2")
    assert last(p) == words + " END"
    # One that broke off, in whatever way, is gone on with too.
    script(p, [])
    half = "data: {\"choices\": [{\"index\": 0, \"delta\": {\"content\": \"half\"}}]}\n\n"
    for end in ("close()", "error(new TypeError('network error'))"):
        p.js("window.fetch = (u, o) => u !== '/v1/chat/completions' ? realFetch(u, o)"
             " : Promise.resolve(new Response(new ReadableStream({start(c) {"
             " c.enqueue(new TextEncoder().encode(%s)); setTimeout(() => c.%s, 50); }}))); true"
             % (json.dumps(half), end))
        say(p, "once more")
        assert last(p, ".error").startswith("the answer broke off"), last(p, ".error")
        assert last(p) == "half"
    script(p, [{"content": " and half"}])
    assert p.js("document.querySelectorAll('.error .link').length") == 2
    p.click(".assistant:last-child .error .link")
    p.wait(DONE + " && !document.querySelector('.assistant:last-child .error')")
    assert last(p) == "half and half"
    fine(s, p)
    p.close()


def offers_nothing_where_the_context_is_full(s, b):
    p = opened(s, b)
    ids = [f"{i:024x}" for i in range(2)]
    message = {"thinking": "", "created": 1, "error": "", "stats": None, "state": "done"}
    give(p, json.dumps({"format": "tern.conversations", "version": 1, "conversations": [
        {"id": "f" * 24, "title": "full", "system": "", "created": 1, "updated": 1,
         "leaf": ids[1], "messages": [
             {**message, "id": ids[0], "parent": None, "role": "user", "text": "a"},
             {**message, "id": ids[1], "parent": ids[0], "role": "assistant", "text": "b",
              "state": "length", "stats": {"tokens": 96, "prompt": 4000}}]}]}))
    p.wait("document.querySelector('#list .talk')")
    p.click("#list .talk a")
    p.wait("document.querySelector('.note')")
    assert "The context is full" in last(p, ".note")
    assert not p.js("document.querySelector('.note .link')")
    fine(s, p)
    p.close()


def shows_how_far_a_real_prompt_is_read(s, b):
    p = opened(s, b)
    settings(p, max_tokens=2, temperature=0)
    text = "the keeper of the light walked to the sea. " * 30
    prompt = s.good("/apply-template", {"messages": [{"role": "user", "content": text.strip()}]})
    total = len(s.good("/tokenize", {"content": prompt["prompt"], "add_special": True})["tokens"])
    p.js("window.seen = []; new MutationObserver(() => { const r = document.querySelector("
         "'.reading'); if (r && seen.at(-1) !== r.textContent) seen.push(r.textContent); })"
         ".observe(document.getElementById('thread'), {subtree: true, childList: true,"
         " characterData: true}); true")
    for again in (False, True):
        p.js("seen.length = 0")
        say(p, text)
        seen = p.js("seen")
        assert seen, "no progress"
        found = [re.fullmatch(r"Reading ([\d,]+) of ([\d,]+) tokens(, ([\d,]+) known already)?", x)
                 for x in seen]
        numbers = [[int((x or "0").replace(",", "")) for x in f.group(1, 2, 4)] for f in found]
        read = [n[0] for n in numbers]
        assert read == sorted(read) and read[-1] <= total, seen
        assert all(n[1] == total for n in numbers), (seen, total)
        assert all((n[2] > total / 2) == again and n[2] <= n[0] for n in numbers), seen
        assert again or len(seen) > 2, seen
        p.click("#new")
        p.wait("document.querySelector('.empty')")
    fine(s, p)
    p.close()


# --- in another window ---

def opened_twice(s, b):
    """Two windows on a conversation that has an answer."""
    p = opened(s, b)
    script(p, [{"content": "answer"}])
    say(p, "question")
    q = Page(b, p.context)
    q.go(p.js("location.href"))
    q.wait("document.querySelector('.assistant .figures')")
    return p, q


def loses_no_click_to_another_window(s, b):
    p, q = opened_twice(s, b)
    let_go = q.press(".user [aria-label='Edit and ask again']")
    script(p, [{"content": "more"}])
    say(p, "another question")
    time.sleep(0.3)  # it is heard of by now
    assert q.js("document.querySelectorAll('.assistant').length") == 1
    let_go()
    q.wait("document.querySelector('.edit textarea')")
    # A button whose release is never heard of keeps nothing back for ever.
    q.key("Escape")
    q.press("#thread .user .text")
    script(p, [{"content": "and more"}])
    say(p, "a third question")
    q.wait("document.querySelectorAll('.assistant').length === 3")
    fine(s, q)
    fine(s, p)
    p.close()


def joins_what_two_windows_say(s, b):
    p, q = opened_twice(s, b)
    # Who looks on sees it come; who edits or has scrolled away is left alone.
    script(q, [{"content": f"q{i} "} for i in range(150)], 10)
    say(q, "from q", wait=False)
    p.wait("document.querySelectorAll('.assistant').length === 2"
           " && document.querySelector('.note')")
    assert "Another window" in last(p, ".note")
    assert not p.js("document.querySelector('.note .link')")
    p.wait("!document.querySelector('.note')")
    assert last(p).endswith("q149") and last(p) == last(q)
    p.click(".user [aria-label='Edit and ask again']")
    p.wait("document.querySelector('.edit textarea')")
    p.type(" of p")
    # Both at once: nothing is lost, and each sees its own.
    script(q, [{"content": f"w{i} "} for i in range(150)], 10)
    script(p, [{"content": f"p{i} "} for i in range(30)], 10)
    say(q, "more of q", wait=False)
    time.sleep(1.2)  # it is kept once meanwhile
    assert p.js("document.querySelector('.edit textarea').value") == "question of p"
    p.key("Enter")
    p.wait("document.querySelectorAll('.message').length === 2 && " + DONE)
    q.wait(DONE)
    q.wait("document.querySelector('.user .which')")
    assert last(p).endswith("p29") and last(q).endswith("w149")
    messages = kept(p)
    for text in ("question", "answer", "from q", "more of q", "question of p",
                 "".join(f"w{i} " for i in range(150)), "".join(f"p{i} " for i in range(30))):
        assert text in messages and messages[text]["state"] == "done", (text, list(messages))
    assert len(messages) == 8
    # A title that one gave outlives what the other keeps.
    p.click("#list li:first-child .quiet")
    p.key("Enter")
    p.wait("document.querySelector('#list input')")
    p.type("named")
    p.key("Enter")
    p.wait("document.title === 'named – Tern'")
    script(q, [{"content": "last"}])
    say(q, "the last of q")
    q.wait("document.title === 'named – Tern'")
    (talk,) = q.js(KEPT)
    assert talk["title"] == "named" and len(talk["messages"]) == 10
    q.reload()
    q.wait("document.querySelectorAll('.assistant .figures').length === 4")
    assert last(q) == "last"
    fine(s, q)
    fine(s, p)
    p.close()
