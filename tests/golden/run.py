"""Runs the command as the .cmd files say and compares with their .out and .err files.

    run.py TERN FOLDER [--models TINY] [NAME...]

A .cmd file is a shell script in which $TERN is the command and $TINY the folder of small random
models (one that needs them is skipped where there are none); it runs in an empty folder. Its
first line may be `# exit N` (else 0 is expected). NAME.out and NAME.err hold what standard
output and standard error must be, line by line; a line that begins with ~ is a regular
expression. A missing file means that nothing may be printed.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

tern, folder, names = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
tiny = os.path.abspath(names[1]) if names[:1] == ["--models"] else None
names = names[2:] if tiny else names


def differs(path, got):
    want = path.read_text().splitlines() if path.exists() else []
    lines = got.decode(errors="replace").splitlines()
    for i in range(max(len(want), len(lines))):
        a = want[i] if i < len(want) else None
        b = lines[i] if i < len(lines) else None
        if a is None or b is None:
            return f"{path.name} line {i + 1}: {b!r} printed, {a!r} expected"
        if not (re.fullmatch(a[1:], b) if a.startswith("~") else a == b):
            return f"{path.name} line {i + 1}: {b!r} printed, {a!r} expected"
    return None


wrong = n = skipped = 0
for cmd in sorted(folder.glob("*.cmd")):
    if names and cmd.stem not in names:
        continue
    text = cmd.read_text()
    if "$TINY" in text and not tiny:
        skipped += 1
        continue
    first = re.match(r"# exit (\d+)", text)
    with tempfile.TemporaryDirectory() as here:
        env = {k: v for k, v in os.environ.items() if k != "TERN_CPU"}
        env.update(TERN=tern, TINY=tiny or "", LC_ALL="C")
        done = subprocess.run(["sh", "-c", text], cwd=here, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=60, env=env)
    n += 1
    problem = differs(cmd.with_suffix(".out"), done.stdout)
    problem = problem or differs(cmd.with_suffix(".err"), done.stderr)
    if done.returncode != (int(first[1]) if first else 0):
        problem = f"exit {done.returncode}, {first[1] if first else 0} expected; {problem}"
    if problem:
        wrong += 1
        print(f"{cmd.stem}: {problem}")
print(f"{n} commands, {wrong} wrong, {skipped} skipped for want of small models (numpy)")
sys.exit(wrong > 0 or n == 0)
