#!/usr/bin/env python3
"""Adds up test results of several builds.

    collect.py meson RESULTS LABEL BUILD      what `meson test` left in BUILD
    collect.py run RESULTS LABEL NAME COMMAND...   runs it: exit 0 passed, 77 skipped, else failed
    collect.py skip RESULTS LABEL NAME REASON
    collect.py end RESULTS [MUST]             prints failures, skips and the closing line; what the
                                              file MUST names ("label: name") may not be skipped

A cmocka program counts as the tests in it, anything else as one. Every skip has a reason: the
last line that the test printed, or the one that begins with SKIPPED.
"""
import json
import os
import re
import subprocess
import sys
import time


def reason_of(text):
    lines = [x.strip() for x in text.splitlines() if x.strip()]
    named = [x for x in lines if re.match(r"skip", x, re.I) and "[" not in x[:1]]
    return (named or lines or ["no reason was printed"])[-1][:200]


def rows_of(label, name, result, text):
    """One row a test: result is passed, failed or skipped."""
    ran = re.search(r"\[=+\] (?:\S+: )?(\d+) test\(s\) run", text)
    skipped = re.findall(r"^\[  SKIPPED \] (\S+)$", text, re.M)
    rows = []
    if result == "passed" and ran:
        names = dict.fromkeys(skipped)
        n = max(0, int(ran[1]) - len(names))
        rows += [{"label": label, "name": f"{name}: {s}", "result": "skipped",
                  "text": reason_of(text)} for s in names]
        if n:
            rows.append({"label": label, "name": name, "result": result, "n": n, "text": ""})
        return rows
    row = {"label": label, "name": name, "result": result, "text": ""}
    if result == "skipped":
        row["text"] = reason_of(text)
    elif result == "failed":
        row["text"] = "\n".join(text.strip().splitlines()[-15:])
    rows.append(row)
    # A check that passed with a part left out names the part.
    if result == "passed":
        rows += [{"label": label, "name": name, "result": "skipped", "text": line[8:].strip(": ")}
                 for line in text.splitlines() if line.startswith("SKIPPED")]
    return rows


def add(results, rows):
    with open(results, "a") as f:
        for r in rows:
            f.write(json.dumps(r) + "\n")


def meson(results, label, build):
    names = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}
    with open(os.path.join(build, "meson-logs", "testlog.json")) as f:
        for line in f:
            t = json.loads(line)
            name = t["name"].split(" / ")[-1]
            text = t.get("stdout", "") + "\n" + t.get("stderr", "")
            result = names.get(t["result"], "failed")
            if t["result"] == "TIMEOUT":
                text += f"\ntimed out after {t['duration']:.0f} s"
            add(results, rows_of(label, name, result, text))


def run(results, label, name, command):
    start = time.time()
    r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    text = r.stdout.decode(errors="replace")
    result = {0: "passed", 77: "skipped"}.get(r.returncode, "failed")
    add(results, rows_of(label, name, result, text))
    print(f"{label}: {name}: {result} ({time.time() - start:.0f} s)")
    if result == "failed":
        print("\n".join("    " + x for x in text.strip().splitlines()[-15:]))


def end(results, must=None):
    with open(results) as f:
        rows = [json.loads(line) for line in f]
    if must:
        with open(must) as f:
            names = {line.strip() for line in f if line.strip()}
        for r in rows:
            if r["result"] == "skipped" and f"{r['label']}: {r['name']}" in names:
                r.update(result="failed", text=f"may not be skipped here: {r['text']}")
    for kind in ("skipped", "failed"):
        for r in rows:
            if r["result"] == kind:
                print(f"{kind.upper()} {r['label']}: {r['name']}: {r['text']}")
    count = {k: sum(r.get("n", 1) for r in rows if r["result"] == k)
             for k in ("passed", "failed", "skipped")}
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] or not count["passed"] else 0


def main(args):
    if args[0] == "meson":
        meson(*args[1:4])
    elif args[0] == "run":
        run(args[1], args[2], args[3], args[4:])
    elif args[0] == "skip":
        add(args[1], [{"label": args[2], "name": args[3], "result": "skipped", "text": args[4]}])
    elif args[0] == "end":
        return end(*args[1:3])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
