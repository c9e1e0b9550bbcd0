"""Runs the commands of README.md that name MODEL.gguf, on a small model, as they stand there.

    check_readme.py README TERN TINY
"""
import os
import pathlib
import subprocess
import sys
import tempfile

readme, tern, tiny = sys.argv[1], *map(os.path.abspath, sys.argv[2:4])
model = pathlib.Path(tiny, "llama-q8_0.gguf")
if not model.exists():
    print("skipped: no small models (they need numpy)")
    sys.exit(77)
wrong = n = 0
for line in pathlib.Path(readme).read_text().splitlines():
    if not line.startswith("    build/tools/tern ") or "MODEL.gguf" not in line:
        continue
    n += 1
    command = line.strip().split(" # ")[0].replace("MODEL.gguf", str(model))
    command = command.replace("build/tools/tern", tern, 1)
    if " bench " in command:
        command += " --prefill 8 --decode 2 --repeat 1"
    if " chat " in command:
        command = f"echo hello | {command} --chat-template chatml -n 2"
    with tempfile.TemporaryDirectory() as here:
        r = subprocess.run(command, shell=True, capture_output=True, stdin=subprocess.DEVNULL,
                           cwd=here)
    if r.returncode or not r.stdout:
        print(f"{line.strip()}: exit {r.returncode}: {r.stderr.decode(errors='replace')[-300:]}")
        wrong += 1
print(f"{n} commands, {wrong} wrong")
sys.exit(wrong > 0 or n == 0)
