"""What the rules share: the project's own text files, its exceptions, and how a finding is told."""
import pathlib
import sys

CODE = ("quant", "runtime", "platform", "tools", "tests")
TEXT = (".c", ".h", ".py", ".sh", ".S", ".md", ".build", ".txt", ".meson", ".cmd",
        ".js", ".css")


def root():
    return pathlib.Path(sys.argv[1])


def files(top, folders, suffixes):
    for folder in folders:
        for f in sorted((top / folder).rglob("*")):
            parts = f.relative_to(top).parts
            if f.suffix in suffixes and "__pycache__" not in parts and "corpus" not in parts:
                yield f, "/".join(parts)


def lines(f):
    return f.read_text(encoding="utf-8", errors="replace").splitlines()


class Findings:
    """Counts findings that no line of exceptions.txt excuses: `rule  path[:name]  reason`."""

    def __init__(self, rule):
        self.n, self.excused = 0, set()
        for line in lines(pathlib.Path(__file__).with_name("exceptions.txt")):
            words = line.split(None, 2)
            if len(words) == 3 and words[0] == rule:
                self.excused.add(words[1])

    def add(self, path, where, text, name=None):
        if path in self.excused or f"{path}:{name}" in self.excused:
            return
        self.n += 1
        print(f"{path}:{where}: {text}")

    def end(self):
        sys.exit(self.n > 0)
