"""Holds images against the files they were built of.

    images.py TERN FOLDER_OF_SMALL_MODELS

For every model: the same ids of a text, the same tokens and log-probabilities of an answer, on
one thread and on two, the same description; an image that is built again is equal byte by byte.
Real models are taken from TERN_MODELS; their images may not pass 1.02 times the file.
"""
import filecmp
import glob
import json
import os
import subprocess
import sys
import tempfile

tern, folder = sys.argv[1:3]
TEXT = "The lighthouse stood on the cliff above the grey sea. 12 + 30 = 42\n\t<s> \u00e4\u4e2d"


def ask(*args):
    done = subprocess.run([tern, *map(str, args), "--json"], capture_output=True)
    if done.returncode:
        sys.exit(f"tern {' '.join(map(str, args))[:150]}: {done.stderr.decode()[-300:]}")
    return json.loads(done.stdout)


def answers(model, ids):
    found = []
    for threads in (1, 2):
        a = ask("run", model, "--ids", ids, "-n", 12, "--temp", 0, "-t", threads, "--seed", 1,
                "--logprobs", 3, "--prompt-logprobs", 2, "--ignore-eos", "-c", 128)
        found.append([a[k] for k in ("prompt_tokens", "tokens", "text", "logprobs",
                                     "prompt_logprobs")])
    return found


def described(model):
    d = ask("inspect", model, "--tensors", "--program")
    for key in ("file_bytes", "n_parts", "n_metadata", "format"):
        d.pop(key, None)
    for key in ("split.no", "split.count", "split.tensors.count", "general.alignment"):
        d["metadata"].pop(key, None)
    for t in d["tensors"]:
        t.pop("offset"), t.pop("part")
    return d


def hold(model, image, most):
    wrong = []
    for out in (image, image + "2"):
        subprocess.run([tern, "build", model, "-o", out], check=True, stdout=subprocess.DEVNULL)
    if not filecmp.cmp(image, image + "2", shallow=False):
        wrong.append("built again it differs")
    os.unlink(image + "2")
    ids = [ask("tokenize", m, "-p", TEXT, "--special") for m in (model, image)]
    if ids[0] != ids[1]:
        wrong.append("ids differ")
    prompt = ",".join(map(str, [3 + i * 7 % 13 for i in range(20)]))
    if answers(model, prompt) != answers(image, prompt):
        wrong.append("answers differ")
    if described(model) != described(image):
        wrong.append("descriptions differ")
    subprocess.run([tern, "inspect", image, "--verify"], check=True, stdout=subprocess.DEVNULL)
    ratio = os.path.getsize(image) / os.path.getsize(model)
    if most and ratio > most:
        wrong.append(f"{ratio:.3f} times the file")
    os.unlink(image)
    if wrong or most:
        print(f"{os.path.basename(model)}: {', '.join(wrong) or 'equal'}, {ratio:.4f}x")
    return not wrong


ok, n = True, 0
with tempfile.TemporaryDirectory() as here:
    for model in sorted(glob.glob(f"{folder}/*.gguf")):
        if "-of-" in model and "-00001-of-" not in model:
            continue
        ok &= hold(model, f"{here}/image.tern", None)
        n += 1
    for model in sorted(glob.glob(os.path.join(os.environ.get("TERN_MODELS", "/nowhere"),
                                               "*.gguf")), key=os.path.getsize)[:1]:
        ok &= hold(model, f"{here}/image.tern", 1.02)
        n += 1
print(f"{n} models compared with their images")
sys.exit(not ok or not n)
