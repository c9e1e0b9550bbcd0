"""Holds the process figure of `tern plan` against what a run takes at its peak.

    check_plan.py TERN FOLDER_OF_SMALL_MODELS

Each run fills its whole context and draws from its whole vocabulary, so that every arena is
touched: its peak resident memory may not pass the figure, and must come within 4 MiB of it (7
with a grammar). So with grammars, small ones and one whose compiling is the peak, and with a
session that is written and taken back, in conversations too. Real models are taken from
TERN_MODELS.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

MIB = 1 << 20
# Greedy choice and top-k look at a vocabulary's best alone.
WHOLE = ["--temp", "1", "--top-k", "0", "--top-p", "0.95", "--min-p", "0", "--seed", "1"]
TIME = "/usr/bin/time"
tern, folder = sys.argv[1:3]


def peak(args, text=""):
    """Peak resident bytes of a program. GNU time starts it from a process of its own, smaller than
    any run: a child of this one would begin with Python's pages, and the kernel counts them."""
    done = subprocess.run([TIME, "-f", "peak %M", *args], input=text.encode(), capture_output=True)
    err = done.stderr.decode(errors="replace")
    if done.returncode:
        sys.exit(f"{' '.join(args)[:120]}: exit {done.returncode}: {err[-300:]}")
    return int(err.rsplit("peak ", 1)[1]) * 1024


def hold(model, context, threads, *more):
    sized = ["-c", str(context), "-t", str(threads), *more]
    plan = json.loads(subprocess.run([tern, "plan", model, *sized, "--json"], check=True,
                                     capture_output=True).stdout)
    ids = ",".join(str(3 + i % 29) for i in range(context - 8))
    used = peak([tern, "run", model, *sized, "--ids", ids, *WHOLE, "--ignore-eos"])
    return judge(model, sized, plan, used)


def hold_chat(model, context, threads, *more):
    """A conversation of long turns that passes its context, and drops what came first."""
    sized = ["-c", str(context), "-t", str(threads), *more]
    plan = json.loads(subprocess.run([tern, "plan", model, *sized, "--json"], check=True,
                                     capture_output=True).stdout)
    turns = "".join("".join(f"word{i * k % 97} " for k in range(60)) + "\n" for i in range(40))
    used = peak([tern, "chat", model, *sized, "-n", "60", *WHOLE, "--chat-template", "chatml"],
                turns)
    return judge(model, ["chat", *sized], plan, used)


def judge(model, asked, plan, used):
    room = plan["process_bytes"] - used
    if model.endswith(".tern") and plan["arenas"]["weights"]:
        sys.exit(f"{model}: an image has a weights arena")
    print(f"{os.path.basename(model)} {' '.join(asked)}: planned "
          f"{plan['process_bytes'] / MIB:.2f}, used {used / MIB:.2f}, {room / MIB:.2f} MiB left")
    # Masks are kept for states that so short a text does not come to.
    held = "--schema" in asked or "--json-mode" in asked
    return 0 <= room <= (7 if held else 4) * MIB


if not os.path.exists(TIME):
    print(f"skipped: {TIME} (GNU time) is not installed")
    sys.exit(77)


def built(name, folder):
    """The image of a small model."""
    image = os.path.join(folder, name + ".tern")
    subprocess.run([tern, "build", f"{sys.argv[2]}/{name}.gguf", "-o", image], check=True,
                   stdout=subprocess.DEVNULL)
    return image


def schema(n):
    """Of n properties: text, numbers, words, dates."""
    kinds = [{"type": "string"}, {"type": "integer", "minimum": -7}, {"type": "boolean"},
             {"enum": ["one", "two", "three"]}, {"type": "string", "format": "date-time"}]
    properties = {f"name{i}": kinds[i % len(kinds)] for i in range(n)}
    return {"type": "object", "properties": properties, "required": list(properties)}


def structured(folder):
    """Cases with a grammar or a session; the second run of the latter takes back the first's."""
    files = {}
    for n in (3, 50):
        files[n] = os.path.join(folder, f"schema{n}.json")
        with open(files[n], "w") as f:
            json.dump(schema(n), f)
    session = ["--session", os.path.join(folder, "session")]
    good = True
    for more in (["--json-mode"], ["--schema", files[3]], ["--schema", files[50]], session, session,
                 [*session, "--schema", files[3]]):
        good &= hold(f"{sys.argv[2]}/llama-q8_0.gguf", 1024, 2, *more)
    good &= hold(f"{sys.argv[2]}/gemma3-window8.gguf", 4096, 1, "--session",
                 os.path.join(folder, "other"))
    for i in range(2):
        good &= hold_chat(f"{sys.argv[2]}/llama-q8_0.gguf", 2048, 2, "--session",
                          os.path.join(folder, "chat"))
    return good


def talk(name, context):
    """A conversation that fills its context several times."""
    model = f"{folder}/{name}.gguf"
    sized = ["-c", str(context), "-t", "1"]
    plan = json.loads(subprocess.run([tern, "plan", model, *sized, "--chat", "--json"], check=True,
                                     capture_output=True).stdout)
    text = "".join(f"this is message number {i} of a long talk\n" for i in range(context // 16))
    done = subprocess.run([TIME, "-f", "peak %M", tern, "chat", model, *sized, *WHOLE, "-n", "20",
                           "--ignore-eos", "--chat-template", "chatml"], input=text.encode(),
                          capture_output=True, check=True)
    used = int(done.stderr.decode(errors="replace").rsplit("peak ", 1)[1]) * 1024
    room = plan["process_bytes"] - used
    print(f"{name} -c {context} in a chat: planned {plan['process_bytes'] / MIB:.2f}, used "
          f"{used / MIB:.2f}, {room / MIB:.2f} MiB left")
    return 0 <= room <= 6 * MIB and b"dropped" in done.stderr


ok = talk("llama-q8_0", 1024) & talk("qwen2-k", 2048)
with tempfile.TemporaryDirectory() as images:
    for name in ("llama-q8_0", "gemma3-window8", "qwen2-k"):
        for threads in (1, 2):
            ok &= hold(built(name, images), 1024, threads)
    ok &= structured(images)
cases = [(m, 1024, t, []) for m in ("llama-q8_0", "gemma3-window8", "qwen2-k") for t in (1, 2)]
cases += [("llama-q8_0", 1024, 2, ["--kv-k", "q8_0", "--kv-v", "f32"]),
          ("llama-q8_0", 1024, 2, ["--kv-k", "q4_0", "--kv-v", "q4_0"]),
          ("llama-q8_0", 1024, 2, ["--exact"]), ("llama-q8_0", 16, 1, ["--chunk", "1"])]
for name, context, threads, more in cases:
    ok &= hold(f"{folder}/{name}.gguf", context, threads, *more)
real = sorted(glob.glob(os.path.join(os.environ.get("TERN_MODELS", "/nowhere"), "*.gguf")),
              key=os.path.getsize)[:2]
for model in real:
    ok &= hold(model, 512, 2)
if not real:
    print("real models: skipped, TERN_MODELS names no folder of them")
sys.exit(not ok)
