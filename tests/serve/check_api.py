"""What a tern serve does beside answering: limits of a text's length, slots, warm prompts, options.

    check_api.py TERN TINY
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

from asking import chat, completion
from harness import run, tiny_model
from server import Server

tern, tiny = sys.argv[1], pathlib.Path(sys.argv[2])
MODEL = tiny_model(tiny, "llama-q8_0.gguf")
LONG = "The sea is wide and the light is old, and nobody comes. " * 20
# Tags in the source make this a template of a model that thinks.
THINKS = ("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
          "{% if add_generation_prompt %}assistant: <think>\n{% endif %}"
          "{% if false %}</think>{% endif %}")


def cached(answer):
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


# --- lengths ---

def lets_nothing_end_before_min_tokens(s):
    free = s.good("/v1/completions", completion(max_tokens=40))["choices"][0]["text"]
    ids = s.good("/tokenize", {"content": "the sea was", "add_special": True})["tokens"]
    first = s.good("/v1/completions", completion(max_tokens=1, logprobs=1))
    assert first["choices"][0]["text"]
    for path, body in (("/v1/completions", completion), ("/v1/chat/completions", chat)):
        # The first token alone would stop it; until then it cannot be drawn.
        for least in (0, 1, 5, 12):
            a = s.good(path, body(max_tokens=12, ignore_eos=False, min_tokens=least, temperature=2,
                                  seed=3, top_k=0, top_p=1, min_p=0))
            assert least <= a["usage"]["completion_tokens"] <= 12
    stop = free[2:4]
    for least in (0, 3, 20, 40):
        a = s.good("/v1/completions", completion(max_tokens=40, stop=stop, min_tokens=least))
        n = a["usage"]["completion_tokens"]
        assert n >= least and free.startswith(a["choices"][0]["text"])
        if least == 0:
            assert a["choices"][0]["finish_reason"] == "stop" and n < 10
        if least == 40:
            assert a["choices"][0]["text"] == free
    every = list(range(3, 200))
    a = s.good("/v1/completions", completion(prompt=ids, stop_token_ids=every[:16], min_tokens=6,
                                             temperature=3, seed=1, top_k=0, top_p=1, min_p=0))
    assert a["usage"]["completion_tokens"] >= 6
    # From then on they end it.
    likely = list(dict.fromkeys(s.good("/tokenize", {"content": free})["tokens"]))[:16]
    ends = [s.good("/v1/completions", completion(max_tokens=200, stop_token_ids=likely, seed=i,
                                                 min_tokens=5, temperature=1)) for i in range(5)]
    assert "stop" in {a["choices"][0]["finish_reason"] for a in ends}
    assert all(a["usage"]["completion_tokens"] >= 5 for a in ends)
    # A bias that is the request's own stays what it was; one of an end token is refused.
    assert s.post("/v1/completions", completion(min_tokens=2, logit_bias={"5": 3}))[0] == 200
    for bad in ({"min_tokens": 13}, {"min_tokens": -1}, {"min_tokens": "x"},
                {"min_tokens": 2, "logit_bias": {"2": 5}}):
        for path, body in (("/v1/completions", completion), ("/v1/chat/completions", chat)):
            status, _, answer = s.post(path, body(**bad))
            assert status == 400 and "min_tokens" in answer["error"]["message"], (bad, answer)


def goes_on_in_a_grammar_until_min_tokens(s):
    free = {"ignore_eos": False, "temperature": 2, "top_k": 0, "top_p": 1, "min_p": 0}
    schema = {"type": "array", "items": {"enum": [1, 22, 333]}}
    call = {"type": "function", "function": {"name": "look", "parameters": {
        "type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}}}
    for path, body in (("/v1/completions", completion), ("/v1/chat/completions", chat)):
        def ask(**more):
            a = s.good(path, body(**{**free, **more}))
            choice = a["choices"][0]
            text = choice["text"] if "text" in choice else choice["message"]["content"]
            return text, a["usage"]["completion_tokens"], choice["finish_reason"]

        # Each letter of this grammar is a token, and after each it may end.
        held = {"grammar": "root ::= [0-9]+", "logit_bias": {}, "max_tokens": 60}
        short = [ask(**held, seed=i) for i in range(4)]
        long = [ask(**held, seed=i, min_tokens=40) for i in range(4)]
        assert min(n for _, n, _ in short) < 40 <= min(n for _, n, _ in long), (short, long)
        for text, n, finish in long:
            assert re.fullmatch("[0-9]{40,}", text) and finish in ("stop", "length")
        # It may end only where it may end, and after so many tokens.
        for form in ({"json_schema": schema},
                     {"response_format": {"type": "json_schema", "json_schema": {
                         "name": "x", "strict": True, "schema": schema}}}):
            for least in (1, 30):
                text, n, finish = ask(**form, seed=1, min_tokens=least, max_tokens=400)
                assert n >= least or json.loads(text) is not None
                assert finish == "length" or set(json.loads(text)) <= {1, 22, 333}, text
        # Where it is at its end the answer is too.
        whole = ask(grammar='root ::= "yes" | "no"', min_tokens=12)
        assert whole[0] in ("yes", "no") and whole[1] < 12 and whole[2] == "stop", whole
        # A token that is to stop it does so early only where nothing else is let in.
        seven = s.good("/tokenize", {"content": "7"})["tokens"][-1:]
        for least in (0, 9):
            text, n, finish = ask(grammar="root ::= [67]{12}", stop_token_ids=seven,
                                  logit_bias={}, min_tokens=least, seed=1)
            assert "7" not in text[:least] and n >= least, (text, n)
        text, n, finish = ask(grammar='root ::= "7" [0-9]+', stop_token_ids=seven, min_tokens=9)
        assert n == 1 and finish == "stop", (text, n, finish)
    for choice in ("required", {"type": "function", "function": {"name": "look"}}, "auto"):
        a = s.good("/v1/chat/completions", {**chat(), **free, "tools": [call], "seed": 5,
                                            "tool_choice": choice, "min_tokens": 20,
                                            "max_tokens": 200})
        answer, n = a["choices"][0], a["usage"]["completion_tokens"]
        if choice == "auto":
            assert n >= 20 or answer["message"]["tool_calls"], a
            continue
        assert answer["finish_reason"] in ("tool_calls", "length"), a
        if answer["finish_reason"] == "tool_calls":
            args = answer["message"]["tool_calls"][0]["function"]["arguments"]
            assert isinstance(json.loads(args)["at"], str)


def counts_tokens_of_reasoning(s):
    usage = s.good("/v1/chat/completions", chat())["usage"]
    assert usage["completion_tokens_details"]["reasoning_tokens"] == 0
    with tempfile.TemporaryDirectory() as folder:
        template = pathlib.Path(folder) / "thinks.jinja"
        template.write_text(THINKS)
        own = Server(tern, MODEL, "-c", 512, "--chat-template", template)
        for budget in (3, 7):
            body = chat(max_tokens=40, reasoning_budget=budget, n=2)
            a = own.good("/v1/chat/completions", body)
            details = a["usage"]["completion_tokens_details"]
            assert details["reasoning_tokens"] == 2 * budget, a["usage"]
            assert a["choices"][0]["message"]["reasoning_content"]
            last = own.events("/v1/chat/completions", {
                **body, "stream_options": {"include_usage": True}})[-1]
            assert last["usage"]["completion_tokens_details"] == details
            a = own.good("/v1/responses", {"input": "hi", "max_output_tokens": 40, "temperature": 0,
                                           "reasoning_budget": budget})
            assert a["usage"]["output_tokens_details"]["reasoning_tokens"] == budget
        assert own.stop() == 0


def says_of_a_response_that_it_was_cut(s):
    body = {"input": "hi", "max_output_tokens": 9, "temperature": 0, "ignore_eos": True}
    a = s.good("/v1/responses", body)
    assert a["status"] == "incomplete" and a["output"][-1]["status"] == "incomplete"
    assert a["incomplete_details"] == {"reason": "max_output_tokens"}
    events = s.named_events("/v1/responses", body)
    assert events[-1]["type"] == "response.incomplete"
    assert events[-1]["response"]["output"] == a["output"] or \
        events[-1]["response"]["output"][-1]["status"] == "incomplete"
    done = [e for e in events if e["type"] == "response.output_item.done"]
    assert done[-1]["item"]["status"] == "incomplete"
    text = a["output"][-1]["content"][0]["text"]
    whole = s.good("/v1/responses", {**body, "stop": text[4:6], "max_output_tokens": 60})
    assert whole["status"] == "completed" and whole["output"][-1]["status"] == "completed"
    assert whole["incomplete_details"] is None


def names_the_fields_of_infill(s):
    for body, field in (({}, "input_prefix"), ({"input_prefix": "a"}, "input_suffix"),
                        ({"input_suffix": "a"}, "input_prefix"),
                        ({"input_prefix": 1, "input_suffix": "a"}, "input_prefix"),
                        ({"input_prefix": "a", "input_suffix": "b"}, "input_suffix")):
        status, _, answer = s.post("/infill", body)
        error = answer["error"]
        assert status == 400 and error["param"] == field, (body, answer)
        assert error["message"].startswith(field + ": "), error
    status, _, answer = s.post("/v1/completions", completion(suffix="x"))
    assert status == 400 and answer["error"]["param"] == "suffix"


# --- prompts ---

def tells_how_far_a_prompt_is(s):
    body = {"return_progress": True, "max_tokens": 3}
    text = "once upon a time " * 50
    for path, asked in (("/v1/completions", completion(**body, prompt=text)),
                        ("/v1/chat/completions", chat(text, **body))):
        events = s.events(path, asked)
        told = [e["prompt_progress"] for e in events if "prompt_progress" in e]
        n = s.good(path, asked)["usage"]["prompt_tokens"]
        assert len(told) > 1 and all(p["total"] == n for p in told), (path, told)
        done = [p["processed"] for p in told]
        assert done == sorted(set(done)) and done[-1] == n, done
        assert told[-1]["time_ms"] > 0 and told[-1]["cache"] < n
        # All of it comes before the first token, and its events have choices like others.
        at = [i for i, e in enumerate(events) if "prompt_progress" in e]
        assert at == list(range(len(at))) and all(len(e["choices"]) == 1 for e in events)
        again = [e["prompt_progress"] for e in s.events(path, asked) if "prompt_progress" in e]
        assert again[-1]["cache"] > n / 2 and again[-1]["processed"] == n
        assert not any("prompt_progress" in e for e in s.events(path, {
            **asked, "return_progress": False}))
        assert s.post(path, {**asked, "return_progress": 1})[0] == 400


def computes_the_new_tokens_of_a_turn_alone(s):
    """Ten turns, and between them requests for a title, which begin otherwise."""
    messages = [{"role": "system", "content": LONG[:300]}]
    before = 0
    for turn in range(10):
        messages.append({"role": "user", "content": f"{turn}: and what of the light?"})
        a = s.good("/v1/chat/completions", {**chat(), "messages": messages})
        # A block of 16 tokens is found whole or not at all.
        assert turn == 0 or cached(a) >= before - 16, (turn, a["usage"], before)
        before = a["usage"]["prompt_tokens"]
        messages.append(a["choices"][0]["message"])
        s.good("/v1/chat/completions", chat(f"a title for {messages[-2]['content']}"))
    assert before > 400


def begins_with_what_was_warmed(_):
    system = {"role": "system", "content": LONG}
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "warm.json"

        def started(content):
            path.write_text(content if isinstance(content, str) else json.dumps(content))
            return Server(tern, MODEL, "-c", 2048, "--chat-template", "chatml", "--warm", path)
        s = started({"messages": [system], "tools": [tool]})
        assert re.search(r"warm: \d+ tokens", s.said)
        a = s.good("/v1/chat/completions", {**chat(), "tools": [tool], "tool_choice": "auto",
                                            "messages": [system, chat()["messages"][0]]})
        assert cached(a) > a["usage"]["prompt_tokens"] - 100, a["usage"]
        cold = s.good("/v1/chat/completions", {**chat(), "messages": [system, system],
                                               "cache_prompt": False})
        assert cached(cold) == 0 and s.stop() == 0
        s = started({"prompt": LONG})
        assert cached(s.good("/v1/completions", completion(prompt=LONG + "and"))) > 200
        assert s.stop() == 0
        for bad in ("{", "[]", "{}", {"messages": "x"}, {"messages": [{"role": 5}]},
                    {"prompt": LONG * 20}):
            try:
                started(bad)
                raise AssertionError(f"{bad}: it started")
            except RuntimeError as e:
                assert "--warm: " in str(e), (bad, e)
        path.unlink()
        try:
            Server(tern, MODEL, "--warm", path)
            raise AssertionError("without a file it started")
        except RuntimeError as e:
            assert "--warm: " in str(e)


def is_not_ready_before_it_is_warm(_):
    # A prompt that takes a while, on a model that is not quite so small.
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "warm.json"
        path.write_text(json.dumps({"prompt": LONG * 6}))
        s = subprocess.Popen([tern, "serve", MODEL, "--port", "0", "-t", "1", "-c", "16384",
                              "--sequences", "1", "--chunk", "16", "--warm", path],
                             stderr=subprocess.PIPE, text=True)
        # Its port is told when it is ready; the kernel knows it before.
        port = None
        while port is None and s.poll() is None:
            port = listening(s.pid)
        probe = Server.__new__(Server)
        probe.port, seen = port, set()
        while 200 not in seen and s.poll() is None:
            status, headers, _ = probe.ask("GET", "/health")
            seen.add(status)
            if status == 503:
                assert headers["Retry-After"]
                assert probe.post("/v1/completions", completion())[0] in (200, 503)
        assert seen == {503, 200}, seen
        s.terminate()
        assert s.wait(20) == 0
        s.stderr.close()


def listening(pid):
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found = re.match(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            continue
        if found:
            inodes.add(found[1])
    for line in open(f"/proc/{pid}/net/tcp").read().splitlines()[1:]:
        field = line.split()
        if field[3] == "0A" and field[9] in inodes:
            return int(field[1].split(":")[1], 16)
    return None


# --- slots ---

def action(s, slot, what, **body):
    return s.post(f"/slots/{slot}?action={what}", body)


def keeps_slots_in_files(_):
    with tempfile.TemporaryDirectory() as folder:
        args = ["-c", 1024, "-np", 2, "--slot-save-path", folder]
        s = Server(tern, MODEL, *args)
        body = completion(prompt=LONG, logprobs=3)
        first = s.good("/v1/completions", body)
        assert cached(first) == 0
        n = first["usage"]["total_tokens"]
        listed = [x for x in s.ask("GET", "/slots")[2] if x["n_tokens"]]
        assert len(listed) == 1 and n - 1 <= listed[0]["n_tokens"] <= n
        slot = listed[0]["id"]
        status, _, answer = action(s, slot, "save", filename="sea.bin")
        assert status == 200 and answer["n_saved"] == listed[0]["n_tokens"], answer
        assert answer["id_slot"] == slot and answer["filename"] == "sea.bin"
        path = pathlib.Path(folder) / "sea.bin"
        assert path.stat().st_size == answer["n_written"] and path.stat().st_mode & 0o777 == 0o600
        assert action(s, 1 - slot, "save", filename="x")[0] == 400
        assert s.stop() == 0

        s = Server(tern, MODEL, *args)
        status, _, answer = action(s, 1, "restore", filename="sea.bin")
        assert status == 200 and answer["n_restored"] == listed[0]["n_tokens"], answer
        assert answer["n_read"] == path.stat().st_size
        again = s.good("/v1/completions", body)
        assert cached(again) > 200 and again["choices"] == first["choices"]
        # More answers than slots: what is kept makes room.
        for i in range(5):
            s.good("/v1/completions", completion(prompt=f"{i} {LONG}"))
        status, _, answer = action(s, 0, "erase")
        assert status == 200 and answer["n_erased"] > 0
        assert [x["n_tokens"] for x in s.ask("GET", "/slots")[2]][0] == 0
        refuses_names_and_states(s, pathlib.Path(folder), path)
        assert s.stop() == 0
    s = Server(tern, MODEL, "-c", 512)
    assert action(s, 0, "save", filename="a")[0] == 501
    assert s.stop() == 0
    done = subprocess.run([tern, "serve", MODEL, "--slot-save-path", "/nowhere/at/all"],
                          capture_output=True, text=True, timeout=20)
    assert done.returncode and "--slot-save-path" in done.stderr


def a_damaged_file_takes_nothing_from_a_slot(_):
    with tempfile.TemporaryDirectory() as folder:
        s = Server(tern, MODEL, "-c", 1024, "-np", 2, "--slot-save-path", folder)
        s.good("/v1/completions", completion(prompt=LONG))
        slot = max(s.ask("GET", "/slots")[2], key=lambda x: x["n_tokens"])
        assert action(s, slot["id"], "save", filename="whole")[0] == 200
        whole = (pathlib.Path(folder) / "whole").read_bytes()
        for name, data in (("head", whole[:200] + bytes([whole[200] ^ 1]) + whole[201:]),
                           ("short", whole[:-1]), ("long", whole + b"x"), ("empty", b""),
                           ("other", b"TERN" + bytes(5000))):
            (pathlib.Path(folder) / name).write_bytes(data)
            status, _, answer = action(s, slot["id"], "restore", filename=name)
            assert status == 400 and answer["error"]["param"] == "filename", (name, answer)
            assert answer["error"]["message"].startswith(name + ": "), answer
            assert s.ask("GET", "/slots")[2][slot["id"]] == slot, name
        # It holds what it held, to the byte, and a request finds that.
        assert action(s, slot["id"], "save", filename="again")[0] == 200
        assert (pathlib.Path(folder) / "again").read_bytes() == whole
        assert cached(s.good("/v1/completions", completion(prompt=LONG))) > 200
        assert s.stop() == 0


def refuses_names_and_states(s, folder, path):
    secret = folder / ".." / (folder.name + "-outside")
    secret.write_bytes(path.read_bytes())
    (folder / "link").symlink_to(secret)
    os.mkfifo(folder / "fifo")
    (folder / "folder").mkdir()
    (folder / "bad").write_bytes(b"TERN" + bytes(5000))
    for name in ("..", ".", "", "a/../b", "/etc/passwd", "%2e%2e%2f", "a\\b", ".hidden", "C:\\x",
                 "x" * 300, "a b", "é", "a\n"):
        for what in ("save", "restore"):
            status, _, answer = action(s, 0, what, filename=name)
            assert status == 400 and answer["error"]["param"] == "filename", (name, answer)
    missing = action(s, 0, "restore", filename="missing")
    for name in ("link", "fifo", "folder"):
        assert action(s, 0, "restore", filename=name)[2] == missing[2], name
        assert action(s, 0, "save", filename=name)[0] in (400, 500), name
    assert missing[0] == 404
    status, _, answer = action(s, 0, "restore", filename="bad")
    assert status == 400
    for text in (json.dumps(answer), json.dumps(missing[2])):
        assert str(folder) not in text and folder.name not in text, text
    assert (folder / "link").is_symlink() and secret.read_bytes() == path.read_bytes()
    secret.unlink()
    for bad in ("/slots/0", "/slots/0?action=copy", "/slots/0?action=", "/slots/0?action=save&x=1"):
        assert s.post(bad, {"filename": "a"})[0] == 400, bad
    for bad, want in (("/slots/2", 404), ("/slots/99999999999999999999", 404), ("/slots/x", 404),
                      ("/slots/-1", 404), ("/slots/", 404)):
        assert s.post(bad + "?action=save", {"filename": "a"})[0] == want, bad
    assert s.post("/slots/0?action=erase", None)[0] == 415
    headers = {"Content-Type": "application/json"}
    assert s.ask("POST", "/slots/0?action=erase", None, headers=headers)[0] == 200
    # Both slots are busy: a name is not looked at, and nobody waits.
    streams = [threading.Thread(target=s.events, args=("/v1/completions", completion(
        max_tokens=700, prompt=f"{i}"))) for i in range(4)]
    [t.start() for t in streams]
    while not all(x["is_processing"] for x in s.ask("GET", "/slots")[2]):
        time.sleep(0.001)
    for what in ("save", "restore", "erase"):
        status, headers, answer = action(s, 1, what, filename="sea.bin")
        assert status == 409 and answer["error"]["param"] == "id_slot", answer
    [t.join() for t in streams]


# --- options ---

def says_what_it_cannot_honour(_):
    def tried(*args):
        done = subprocess.run([tern, "serve", MODEL, "--port", "0", *args], capture_output=True,
                              text=True, timeout=20)
        assert done.returncode == 2 and args[0] in done.stderr, (args, done.stderr)
        return done.stderr
    for args in (["--tensor-parallel-size", "2"], ["--n-gpu-layers", "99"], ["--lora", "x"],
                 ["--gpu-memory-utilization", "0.9"], ["--mlock"], ["--dtype", "float16"],
                 ["--ssl-keyfile", "x"], ["--rope-freq-base", "1"], ["--stop", "x"],
                 ["--logit-bias", "1=2"], ["--flash-attn", "off"], ["--model-draft", "x"]):
        assert "cannot be honoured" in tried(*args)
    assert "there is no option" in tried("--no-such-option")
    for args in (["--kv-cache-dtype", "fp8"], ["--api-key", ""]):
        done = subprocess.run([tern, "serve", MODEL, *args], capture_output=True, text=True,
                              timeout=20)
        assert done.returncode and args[0] in done.stderr


def takes_what_is_so_anyway(_):
    s = Server(tern, MODEL, "-c", 256, "-np", 3, "-ctk", "q8_0", "-ctv", "q4_0", "-cb", "--jinja",
               "-fa", "on", "-ngl", 0, "--metrics", "--slots", "--embeddings", "--alias", "own",
               "--enable-prefix-caching", "--dtype", "auto", "-s", 7, "-n", 5, "--queue", 9)
    assert "kv q8_0 q4_0" in s.said and "3 sequences" in s.said
    assert "9 requests may wait" in s.said, s.said
    answers = [s.good("/v1/completions", {"prompt": "a", "ignore_eos": True, "temperature": 1})
               for _ in range(2)]
    assert answers[0]["choices"] == answers[1]["choices"]
    assert answers[0]["usage"]["completion_tokens"] == 5
    assert s.stop() == 0
    s = Server(tern, MODEL, "--max-model-len", 256, "--max-num-seqs", 2, "--seed", 7,
               "--kv-cache-dtype", "auto", "--served-model-name", "own", "--ignore-eos")
    assert "kv f16 f16" in s.said and "60 requests may wait" in s.said
    assert s.good("/v1/completions", {"prompt": "a"})["usage"]["completion_tokens"] == 16
    assert s.good("/v1/completions", {"prompt": "a"})["model"] == "own" and s.stop() == 0


def plans_all_of_it(_):
    def plan(*args):
        done = subprocess.run([tern, "plan", MODEL, "--server", "--json", "-t", "1", *args],
                              capture_output=True, check=True)
        return json.loads(done.stdout)
    least = plan("-c", "512")
    for more in (["--slot-save-path", "."], ["--connections", "1000"], ["--queue", "600"],
                 ["--max-body", "4M"], ["--pooling", "mean"], ["--sequences", "9"]):
        assert plan("-c", "512", *more)["process_bytes"] > least["process_bytes"], more
    # Of a body: four times in the HTTP layer, and more than that in what is made of it.
    grown = plan("-c", "512", "--max-body", "4M")["process_bytes"] - least["process_bytes"]
    assert grown > 2 * 4 * (3 << 20), grown


# --- memory ---

def group_of(n_bytes):
    """A group of processes that has so much memory; None: none can be made here."""
    for base, name in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
                       ("/sys/fs/cgroup", "memory.max")):
        path = pathlib.Path(base) / f"tern-{os.getpid()}"
        try:
            path.mkdir()
        except OSError:
            continue
        try:
            (path / name).write_text(str(n_bytes))
            return path
        except OSError:
            path.rmdir()
    return None


def takes_no_more_than_its_group_has(_):
    group = group_of(256 << 20)
    if not group:
        print("  no group of processes can be made here")
        return
    model = tiny_model(tiny, "llama-mha.gguf")
    kv = ["-ctk", "f32", "-ctv", "f32", "-np", 32]  # 192 MiB, if all were used
    try:
        free = Server(tern, model, *kv)
        held = Server(tern, model, *kv, preexec_fn=lambda: (group / "cgroup.procs").write_text(
            str(os.getpid())))
        contexts = [int(re.search(r"context (\d+)", s.said)[1]) for s in (free, held)]
        assert contexts[0] == 2048 and contexts[1] < 2048, contexts
        assert held.good("/v1/completions", completion())["usage"]["completion_tokens"] == 12
        assert free.stop() == held.stop() == 0
    finally:
        for _ in range(100):
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.02)


# --- figures ---

def metrics(s):
    """The samples by name and labels, read as Prometheus' text format says it, strictly."""
    status, headers, text = s.ask("GET", "/metrics")
    assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert text.endswith("\n")
    samples, types, helped = {}, {}, {}
    family = None
    for line in text.split("\n")[:-1]:
        if line.startswith("# HELP "):
            family, told = re.fullmatch(r"# HELP (\S+) ([^\\]+)", line).groups()
            assert family not in helped, line  # a family is in one piece
            helped[family] = told
        elif line.startswith("# TYPE "):
            name, kind = re.fullmatch(r"# TYPE (\S+) (counter|gauge)", line).groups()
            assert name == family and name not in types, line
            assert (kind == "counter") == name.endswith("_total"), line
            types[name] = kind
        else:
            name, labels, value = re.fullmatch(
                r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{LABEL(?:,LABEL)*\})? ([0-9.e+-]+)'
                .replace("LABEL", r'[a-z_]+="[^"\\]*"'), line).groups()
            assert name == family and name in types, line
            key = name + (labels or "")
            assert key not in samples and float(value) >= 0, line
            samples[key] = float(value)
    assert set(types) == set(helped) == {k.split("{")[0] for k in samples}
    return samples, types


def figures_are_right_and_only_grow(_):
    s = Server(tern, MODEL, "-np", 2, "-c", 2048, "--kv-tokens", 2048, "--queue", 3)
    before, _ = metrics(s)
    n = lambda name: now["tern_" + name] - before["tern_" + name]
    blocks = lambda use: now[f'tern_kv_blocks{{window="0",use="{use}"}}']

    def look(after_idle=True):
        if after_idle:
            s.wait_idle()
        now, kinds = metrics(s)  # of blocks nothing is told before they were looked at once
        for name, value in before.items():
            assert kinds[name.split("{")[0]] == "gauge" or now[name] >= value, name
        return now

    assert all(v == 0 for k, v in before.items() if not k.startswith(
        ("tern_kv_blocks", "tern_connections", "tern_requests_busy", "tern_http"))), before
    prompt = list(range(5, 105))
    for _ in range(2):
        s.good("/v1/completions", completion(prompt=prompt, max_tokens=7))
    now = look()
    assert n("requests_total") == 2 and n("prompt_tokens_total") == 200
    assert n("prompt_tokens_cached_total") == 96 and n("generated_tokens_total") == 14
    assert n("steps_total") >= 14 and n("step_seconds_total") > 0 and n("preemptions_total") == 0
    assert now["tern_sequences_running"] == now["tern_requests_waiting"] == 0
    assert blocks("used") == blocks("shared") == 0 and blocks("kept") >= 6
    assert blocks("free") + blocks("kept") == 128
    before = now
    # Answers by their class; what is refused is no request for text.
    assert s.post("/v1/completions", completion(n=0))[0] == 400
    assert s.ask("GET", "/nowhere")[0] == 404
    assert s.good("/tokenize", {"content": "a"})
    now = look()
    assert n('http_responses_total{code="4xx"}') == 2
    assert n('http_responses_total{code="5xx"}') == 0
    assert n('http_responses_total{code="2xx"}') >= 2 and n("requests_total") == 0
    before = now
    # Two run, the third waits; together they want more than the pool has.
    asked = [threading.Thread(target=s.good, args=("/v1/completions", completion(
        prompt=[9 + i] * 800, max_tokens=1100))) for i in range(2)]
    [t.start() for t in asked]
    while s.metric("sequences_running") < 2:
        assert any(t.is_alive() for t in asked)
    asked.append(threading.Thread(target=s.good, args=("/v1/completions", completion())))
    asked[-1].start()
    seen = set()
    while any(t.is_alive() for t in asked):
        now = look(after_idle=False)
        seen.add((now["tern_sequences_running"], now["tern_requests_waiting"]))
    now = look()
    assert n("generated_tokens_total") == 2212 and n("preemptions_total") >= 1, now
    assert (2, 1) in seen and max(r for r, _ in seen) == 2, seen
    # Several choices of one prompt: its tokens count once, and each generated one.
    before = now
    s.good("/v1/completions", completion(prompt=prompt, max_tokens=4, n=3))
    now = look()
    assert n("prompt_tokens_total") == 100 and n("generated_tokens_total") == 12
    assert n("requests_total") == 1
    assert s.stop() == 0


TESTS = [figures_are_right_and_only_grow, takes_no_more_than_its_group_has,
         lets_nothing_end_before_min_tokens,
         goes_on_in_a_grammar_until_min_tokens, counts_tokens_of_reasoning,
         says_of_a_response_that_it_was_cut, names_the_fields_of_infill,
         tells_how_far_a_prompt_is, computes_the_new_tokens_of_a_turn_alone,
         begins_with_what_was_warmed, is_not_ready_before_it_is_warm,
         keeps_slots_in_files, a_damaged_file_takes_nothing_from_a_slot,
         says_what_it_cannot_honour, takes_what_is_so_anyway, plans_all_of_it]
server = Server(tern, MODEL, "-c", 2048, "--chunk", 64, "--chat-template", "chatml")
sys.exit(run(TESTS, server, sys.argv[3:]) > 0)
