"""What else the page shows, how it looks, and for whom."""
import json
import time

from server import Server
from output import MARKDOWN
from using import DONE, fine, last, opened, picture, say, script, settings


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
    p.wait("document.querySelector('.thought').innerText.includes('thought 39')")
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
    keyed = Server(s.tern, s.model, "-c", "512", "--chat-template", "chatml", "--api-key", "secret")
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
    p.click("#open-settings")
    p.wait("document.querySelector('[name=temperature]').placeholder === '0.8'")
    p.click("#open-settings")
    say(p, "the sea was " * 12)
    assert asked() == 0  # nobody looks
    p.click("#open-machine")
    p.wait("document.querySelector('.legend')")
    p.wait("document.querySelector('.page canvas[aria-label*=blocks]')")
    label = p.js("document.querySelector('.page canvas[aria-label*=blocks]').ariaLabel")
    assert "kept for reuse" in label and "free" in label, label
    colours = p.js("(() => { const c = document.querySelector('canvas[aria-label*=blocks]');"
                   " const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
                   " const s = new Set();"
                   " for (let i = 0; i < d.length; i += 4) if (d[i + 3] === 255)"
                   " s.add(d[i] + ',' + d[i + 1] + ',' + d[i + 2]); return s.size; })()")
    assert colours >= 2, colours
    assert "of 4,096 tokens" in p.js("document.getElementById('panel').innerText")
    picture(p, "machine-1280")
    hide = "(hidden) => { Object.defineProperty(document, 'hidden', {get: () => hidden, " \
           "configurable: true}); document.dispatchEvent(new Event('visibilitychange')); }"
    p.js(f"({hide})(true)")  # nobody sees it
    time.sleep(0.2)
    before = asked()
    time.sleep(1.3)
    assert asked() == before
    p.js(f"({hide})(false)")
    begun = time.monotonic()
    while asked() == before:
        assert time.monotonic() - begun < 3
        p.js("1")
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
    script(p, [{"reasoning_content": "First this, then that."}, {"content": MARKDOWN}])
    say(p, "Show me what you can do")
    ground = "getComputedStyle(document.body).backgroundColor"
    grounds = []
    for dark in (False, True):
        p.media(dark)
        p.wait(f"document.documentElement.dataset.theme === '{'dark' if dark else 'light'}'")
        assert p.js(CONTRAST) == [], p.js(CONTRAST)
        grounds.append(p.js(ground))
        p.js("document.getElementById('scroll').scrollTop = 0")
        picture(p, f"{'dark' if dark else 'light'}-1280")
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
        script(p, [{"reasoning_content": "hm " * 50},
                   {"content": MARKDOWN + "\n```\n\n" + "w" * 300}])
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
    script(p, [{"content": "A first paragraph.\n\nA second "},
               {"content": "one.\n\n```c\nint x;\n```"}]
           + [{"content": f" w{i}"} for i in range(30)], 5)
    p.js("window.heard = []; new MutationObserver(() => heard.push(document.getElementById('said')"
         ".textContent)).observe(document.getElementById('said'), {childList: true}); true")
    p.key("Enter")
    p.wait("document.querySelector('.assistant')")
    p.wait(DONE)
    assert p.js("document.querySelector('.user .text').textContent") == "one\ntwo"
    heard = p.js("heard")
    assert any(h.startswith("A first paragraph.") for h in heard), heard
    assert heard[-1].startswith("The answer is complete"), heard
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
