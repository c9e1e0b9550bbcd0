"""Puts the page together: one HTML file, and as C what the server sends.

    assemble.py SOURCES MODULES OUT.html OUT.c

SOURCES holds page.html, page.css and our scripts; MODULES Node's modules (markdown-it and
DOMPurify). Scripts are CommonJS: each becomes a function in a table, and `require` a look into
it, so that nothing is fetched and nothing runs that was not named here. Comments are left out.
The policy that the page is sent with names the hashes of exactly these scripts and this style.
"""
import base64
import gzip
import hashlib
import html
import json
import pathlib
import re
import sys

# A name that a browser does not have, and the file of ours that stands for it.
OURS = {"punycode": "punycode.js"}
REQUIRE = re.compile(r"""\brequire\(\s*(['"])([^'"]+)\1\s*\)""")


class Bundle:
    """The scripts that an entry needs, each once, in the order they were found."""

    def __init__(self, sources, modules):
        self.sources, self.modules = sources, modules
        self.numbers, self.parts = {}, []

    def file_of(self, name, asker):
        if name in OURS:
            return self.sources / OURS[name]
        if name == "dompurify":
            return self.modules / "dompurify/dist/purify.min.js"
        if name.startswith("."):
            tries = [asker.parent / name]
        else:
            nested = self.modules / "markdown-it/node_modules"
            tries = [nested / name, self.modules / name]
            if name == "markdown-it":
                tries = [self.modules / "markdown-it/lib"]
        for t in tries:
            for f in (t, t.with_name(t.name + ".js"), t / "index.js"):
                if f.is_file():
                    return f.resolve()
        raise SystemExit(f"assemble.py: {asker}: there is no module '{name}'")

    def add(self, path):
        if path in self.numbers:
            return self.numbers[path]
        number = self.numbers[path] = len(self.numbers)
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            self.parts.append((number, "module.exports = " + json.dumps(json.loads(text)) + ";"))
            return number
        if not path.name.endswith(".min.js"):
            text = without_comments(text)
            text = REQUIRE.sub(lambda m: f"require({self.add(self.file_of(m[2], path))})", text)
        self.parts.append((number, text))
        return number

    def script(self, entry):
        first = self.add(entry)
        rows = ",\n".join(f"{n}: function (module, exports, require) {{\n{text.strip()}\n}}"
                          for n, text in sorted(self.parts))
        return ("(function () {\n'use strict';\nvar table = {\n" + rows + "\n}, made = {};\n"
                "function require(n) {\n    if (!made[n]) {\n"
                "        made[n] = { exports: {} };\n"
                "        table[n].call(window, made[n], made[n].exports, require);\n    }\n"
                "    return made[n].exports;\n}\n"
                f"require({first});\n}})();\n")


def without_comments(text):
    """Drops comments that have lines of their own; others may be in strings, and stay."""
    kept, inside = [], False
    for line in text.splitlines():
        bare = line.strip()
        if inside:
            inside = "*/" not in bare
            continue
        if not bare or bare.startswith("//"):
            continue
        if bare.startswith("/*") and ("*/" not in bare or bare.endswith("*/")):
            inside = "*/" not in bare
            continue
        kept.append(line.rstrip())
    return "\n".join(kept)


def for_script(text):
    """Text that ends no script element and opens no comment in one."""
    return text.replace("<!--", "<\\x21--").replace("</script", "<\\/script")


def digest(text):
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def style(text):
    return re.sub(r"\n\s*\n+", "\n", re.sub(r"/\*.*?\*/", "", text, flags=re.S)).strip() + "\n"


def policy(scripts, css):
    allowed = " ".join(f"'sha256-{digest(s)}'" for s in scripts)
    return "; ".join([
        "default-src 'none'", f"script-src {allowed}", f"style-src 'sha256-{digest(css)}'",
        "connect-src 'self'", "img-src data:", "form-action 'none'", "base-uri 'none'",
        "frame-ancestors 'none'", "require-trusted-types-for 'script'",
        "trusted-types dompurify"])


def c_bytes(name, data):
    rows = [",".join(map(str, data[i:i + 32])) for i in range(0, len(data), 32)]
    return f"static const unsigned char {name}[] = {{\n" + ",\n".join(rows) + "\n};\n"


def main(sources, modules, out_html, out_c):
    sources, modules = pathlib.Path(sources).resolve(), pathlib.Path(modules)
    theme = for_script(without_comments((sources / "theme.js").read_text(encoding="utf-8")) + "\n")
    script = for_script(Bundle(sources, modules).script(sources / "main.js"))
    css = style((sources / "page.css").read_text(encoding="utf-8"))
    page = (sources / "page.html").read_text(encoding="utf-8")
    licences = (sources / "licences.txt").read_text(encoding="utf-8")
    for mark, text in (("licences", html.escape(licences)), ("style", css), ("theme", theme),
                       ("script", script)):
        before, found, after = page.partition("{{" + mark + "}}")
        if not found:
            raise SystemExit(f"assemble.py: page.html has no {{{{{mark}}}}}")
        page = before + text + after
    data = page.encode()
    zipped = gzip.compress(data, 9, mtime=0)
    pathlib.Path(out_html).write_bytes(data)
    pathlib.Path(out_c).write_text(
        '/* page_data.c: made by assemble.py. */\n#include "tools/serve/page.h"\n\n'
        + c_bytes("plain", data) + c_bytes("zipped", zipped)
        + f'\nconst struct tern_page_data tern_page = {{\n    "{policy([theme, script], css)}",\n'
        f'    "\\"{hashlib.sha256(data).hexdigest()[:32]}\\"",\n'
        "    {(const char *)plain, sizeof plain}, {(const char *)zipped, sizeof zipped},\n};\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
