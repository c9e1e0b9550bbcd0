"""Links an image into a program, as an object and as an array, and runs it.

    check_link.py TERN LIBRARY SOURCE_ROOT MODEL CC...

The linked program must print what `tern run` prints. An object for aarch64 is linked too where
there is a linker for it.
"""
import os
import shutil
import subprocess
import sys
import tempfile

tern, library, root, model, cc = *sys.argv[1:5], sys.argv[5:]


def must(*args, **more):
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    if done.returncode:
        sys.exit(f"{' '.join(args)[:200]}: exit {done.returncode}: {done.stderr.decode()[-400:]}")
    return done.stdout


want = must(tern, "run", model, "-p", "hello", "-n", "16", "--temp", "0", "--ignore-eos", "-c",
            "64", "-t", "1")
with tempfile.TemporaryDirectory() as here:
    os.mkdir(f"{here}/tern")
    shutil.copy(f"{root}/runtime/tern.h", f"{here}/tern/tern.h")
    must(tern, "build", model, "--object", f"{here}/m.o", "--c-array", f"{here}/m.c", "-o",
         f"{here}/m.tern")
    for how in ("m.o", "m.c"):
        program = f"{here}/{how}.out"
        must(*cc, "-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{here}",
             f"{root}/tools/examples/linked.c", f"{here}/{how}", library, "-lm", "-o", program)
        got = must(program, "hello")
        if got != want or not got:
            sys.exit(f"{how}: the linked program printed {got!r}, tern run {want!r}")
    # An image is a model as well: what is built of it is the same.
    must(tern, "build", f"{here}/m.tern", "--object", f"{here}/n.o", "-o", f"{here}/n.tern")
    for a, b in (("m.o", "n.o"), ("m.tern", "n.tern")):
        if open(f"{here}/{a}", "rb").read() != open(f"{here}/{b}", "rb").read():
            sys.exit(f"{b}, built of an image, differs from {a}")
    ld = shutil.which("aarch64-linux-gnu-ld")
    must(tern, "build", model, "--object", f"{here}/a.o", "--arch", "aarch64", "--symbol", "net")
    if ld:
        must(ld, "-e", "net", "-o", f"{here}/a.out", f"{here}/a.o")
    print("object and array linked and run" + (", aarch64 linked" if ld else ""))
