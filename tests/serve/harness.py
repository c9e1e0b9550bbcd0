"""Runs a check's tests, one after the other, and tells of each."""
import sys
import time


def run(tests, server, only):
    """How many failed. A test is a function of the server (None: it starts its own)."""
    failed = 0
    for test in tests:
        if only and test.__name__ not in only:
            continue
        begun = time.monotonic()
        try:
            test(server)
            print(f"ok {test.__name__} ({time.monotonic() - begun:.2f} s)", flush=True)
        except Exception as e:
            failed += 1
            where = e.__traceback__
            while where.tb_next:
                where = where.tb_next
            print(f"FAILED {test.__name__}: {where.tb_frame.f_code.co_filename.split('/')[-1]}, "
                  f"line {where.tb_lineno}: {type(e).__name__}: {str(e)[:300]}", flush=True)
            if server and server.process.poll() is not None:
                print("the server has ended:", server.process.returncode,
                      server.process.stderr.read())
                return failed
    if server and server.stop() != 0:
        print("FAILED: the server's exit code", server.said[-300:])
        failed += 1
    return failed


def tiny_model(folder, name):
    path = folder / name
    if not path.exists():
        print("skipped: no small models (they need numpy)")
        sys.exit(77)
    return path
