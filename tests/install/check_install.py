"""Installs a build into an empty folder, builds minimal.c against it as a user would, runs it.

    check_install.py BUILD_FOLDER MINIMAL_C CC...

The model is the smallest *.gguf in the folder TERN_MODELS; without one the program is built and
its usage checked, and the test says that it skipped (77).
"""
import glob
import os
import subprocess
import sys
import tempfile

build, source, cc = *sys.argv[1:3], sys.argv[3:]


def call(*args, **more):
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    return done.returncode, done.stdout, done.stderr


def must(*args, **more):
    code, out, err = call(*args, **more)
    if code:
        sys.exit(f"{' '.join(args)}: exit {code}: {err or out}")
    return out


with tempfile.TemporaryDirectory() as top:
    must("meson", "install", "-C", build, "--no-rebuild", "--destdir", top)
    found = glob.glob(f"{top}/**/tern.pc", recursive=True)
    if len(found) != 1:
        sys.exit(f"tern.pc: {len(found)} installed, 1 needed")
    env = dict(os.environ, PKG_CONFIG_PATH=os.path.dirname(found[0]), PKG_CONFIG_SYSROOT_DIR=top)
    flags = must("pkg-config", "--cflags", "--libs", "--static", "tern", env=env).split()
    folder = next(f[2:] for f in flags if f.startswith("-L"))
    program = f"{top}/minimal"
    must(*cc, "-std=gnu11", "-Wall", "-Werror", source, "-o", program, *flags)
    env["LD_LIBRARY_PATH"] = folder
    code, out, err = call(program, env=env)
    if code != 2 or "usage" not in err:
        sys.exit(f"minimal without arguments: exit {code}, {err!r}")
    models = glob.glob(os.path.join(os.environ.get("TERN_MODELS", ""), "*.gguf"))
    if not os.environ.get("TERN_MODELS") or not models:
        print("built against the installed library; not run: TERN_MODELS names no folder of models")
        sys.exit(77)
    model = min(models, key=os.path.getsize)
    out = must(program, model, "Once upon a time", env=env)
    print(f"{os.path.basename(model)}: {out.strip()!r}")
    if not out.strip():
        sys.exit("minimal printed no text")
