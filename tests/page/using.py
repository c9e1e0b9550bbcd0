"""What the page's checks share: opening it, saying something, answers that no model gives."""
import json
import os

SHOTS = os.environ.get("TERN_SHOTS")
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
    p.wait("document.getElementById('model')?.textContent")


def script(p, pieces, ms=0):
    p.js(SCRIPT % (json.dumps(pieces), ms))


KEPT = ("new Promise((r) => { indexedDB.open('tern', 1).onsuccess = (e) => { e.target.result"
        ".transaction('bodies').objectStore('bodies').getAll().onsuccess = (e) =>"
        " r(e.target.result); }; })")


def reloaded(p):
    """The page, loaded again once what it has begun to keep is kept: reads wait for writes."""
    p.js(KEPT)
    p.reload()


def say(p, text, wait=True):
    p.wait("document.getElementById('model')?.textContent")
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


def give(p, text):
    p.js("(() => { const d = new DataTransfer(), e = document.querySelector('input[type=file]');"
         " d.items.add(new File([%s], 'x.json')); e.files = d.files;"
         " e.dispatchEvent(new Event('change')); })()" % json.dumps(text))
