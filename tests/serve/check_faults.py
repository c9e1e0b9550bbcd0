"""What went wrong in other servers, asked of a tern serve; and what its answers promise.

    check_faults.py TERN TINY

A name in brackets is that of the fault in the list of faults that this project is held to.
"""
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time

from asking import at_once, chat, completion
from harness import run, tiny_model
from server import Server, receive

tern, tiny = sys.argv[1], pathlib.Path(sys.argv[2])
MODEL = tiny_model(tiny, "llama-q8_0.gguf")
COMPLETIONS, CHATS, RESPONSES = "/v1/completions", "/v1/chat/completions", "/v1/responses"
WILD = {"temperature": 4, "top_k": 0, "top_p": 1, "min_p": 0}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {
    "type": "object", "properties": {"at": {"type": "string", "maxLength": 6}},
    "required": ["at"], "additionalProperties": False}}}


def lives(s):
    assert s.good(COMPLETIONS, completion())["usage"]["completion_tokens"] == 12


# --- the same bits [C11] ---

def kept(answer):
    return [(c["text"], c["logprobs"]) for c in answer["choices"]]


def is_equal_in_every_bit_alone_among_31_others_and_after_a_restart(_):
    bodies = []
    for i in range(32):
        own = [{"temperature": 0}, {"temperature": 0.9, "seed": i}, {**WILD, "seed": 2**63 - 1 - i},
               {"temperature": 1, "seed": -1 - i, "top_k": 5, "repetition_penalty": 1.3}][i % 4]
        bodies.append(completion(prompt=f"{i % 5} the keeper of the light " * (1 + i % 7),
                                 logprobs=3, max_tokens=24 + i % 9, **own))
    args = ["-c", 512, "-np", 32, "--queue", 40]
    s = Server(tern, MODEL, *args)
    alone = [kept(s.good(COMPLETIONS, {**b, "cache_prompt": False})) for b in bodies]
    for _ in range(2):
        assert [kept(a) for a in at_once([lambda b=b: s.good(COMPLETIONS, b)
                                          for b in bodies])] == alone
    assert s.stop() == 0
    s = Server(tern, MODEL, *args, "--chunk", 7)
    again = at_once([lambda b=b: s.good(COMPLETIONS, b) for b in reversed(bodies)])
    assert [kept(a) for a in reversed(again)] == alone and s.stop() == 0


def is_the_same_where_the_pool_is_full(_):
    """[D6] Answers are put off and computed again, and lose and double nothing."""
    bodies = [completion(prompt=f"{i} the light is old. " * 8, max_tokens=150, seed=i, logprobs=1,
                         **WILD) for i in range(4)]
    s = Server(tern, MODEL, "-c", 512)
    alone = [kept(s.good(COMPLETIONS, b)) for b in bodies]
    assert s.stop() == 0
    s = Server(tern, MODEL, "-c", 512, "--kv-tokens", 576)
    assert [kept(a) for a in at_once([lambda b=b: s.good(COMPLETIONS, b)
                                      for b in bodies])] == alone
    streams = at_once([lambda b=b: s.events(COMPLETIONS, b) for b in bodies])
    assert ["".join(e["choices"][0]["text"] for e in x) for x in streams] == \
        [a[0][0] for a in alone]
    assert s.stop() == 0
    done = subprocess.run([tern, "serve", MODEL, "-c", "512", "--kv-tokens", "100"],
                          capture_output=True, text=True, timeout=20)
    assert done.returncode and "--kv-tokens: 100 given" in done.stderr


# --- requests [E1, E5, E6, E10, E11, E12] ---

FIELDS = {
    COMPLETIONS: ["prompt", "max_tokens", "temperature", "top_p", "top_k", "min_p", "typical_p",
                  "n", "best_of", "stream", "stream_options", "logprobs", "echo", "stop", "seed",
                  "presence_penalty", "frequency_penalty", "repetition_penalty", "logit_bias",
                  "suffix", "ignore_eos", "min_tokens", "stop_token_ids", "cache_prompt", "grammar",
                  "json_schema", "response_format", "return_progress", "repeat_last_n", "n_discard",
                  "n_keep", "id_slot", "n_probs", "n_cache_reuse", "user", "model"],
    CHATS: ["messages", "tools", "tool_choice", "parallel_tool_calls", "response_format",
            "logprobs", "top_logprobs", "max_completion_tokens", "chat_template_kwargs",
            "reasoning_effort", "reasoning_budget", "add_generation_prompt", "stop", "n",
            "stream_options"],
    RESPONSES: ["input", "instructions", "tools", "tool_choice", "text", "reasoning",
                "max_output_tokens", "previous_response_id", "stream", "store", "metadata"],
    "/v1/embeddings": ["input", "encoding_format", "dimensions"],
    "/infill": ["input_prefix", "input_suffix", "n"],
    "/tokenize": ["content", "add_special", "with_pieces"], "/detokenize": ["tokens"],
    "/apply-template": ["messages", "tools"],
}
WRONG = ["null", "true", '"x"', "-1", "[]", "{}", '{"a":[{}]}', "0", "1.5", "9007199254740993",
         "-9223372036854775808", "[null]", '[[1]]', '"\\u00e9"', "1e308"]


def answers_wrong_kinds_with_an_error_or_as_if_they_were_not_there(s):
    """[E1, D3] Every field with a value of every kind; nothing else is disturbed."""
    whole = {COMPLETIONS: completion(max_tokens=2), CHATS: chat(max_tokens=2),
             RESPONSES: {"input": "hi", "max_output_tokens": 2},
             "/v1/embeddings": {"input": "a"}, "/infill": {"input_prefix": "a"},
             "/tokenize": {"content": "a"}, "/detokenize": {"tokens": [5]},
             "/apply-template": {"messages": chat()["messages"]}}
    n = 0
    for path, names in FIELDS.items():
        for name in names:
            for wrong in WRONG:
                body = {k: v for k, v in whole[path].items() if k != name}
                text = json.dumps(body)[:-1] + f', "{name}": {wrong}}}'
                status, headers, answer = s.post(path, text.replace("{, ", "{"))
                assert status in (200, 400, 413), (path, name, wrong, status, answer)
                if status != 200:
                    assert answer["error"]["message"] and "type" in answer["error"]
                n += 1
    assert n > 1000
    lives(s)


def names_the_place_in_what_is_no_json(s):
    """[E1, E7, E12] The line and column, and never a byte of what was sent."""
    for body, place in ((b'{"a": 1, "a": 2}', "column 12"), (b'{"a":\n 1e999}', "line 2"),
                        (b'{"a": 99999999999999999999}', "column"), (b"{:", "column 2"),
                        (b'{"a": "\xff"}', "line 1"), (b"\xb0\xa1\xce\xd2", "line 1"),
                        (b'{"\xe9\xe8": 1, "a"}', "line 1"), (b"", "line 1"),
                        ("\ufeff{}".encode(), "line 1"), ('{"a": 1}'.encode("utf-16"), "line 1")):
        for path in (COMPLETIONS, CHATS, "/tokenize", "/v1/embeddings"):
            status, _, answer = s.post(path, body)
            message = answer["error"]["message"]
            assert status == 400 and place in message, (body, message)
            assert answer["error"]["code"] == "invalid_json" and message.isascii()
    deep = {}
    for n in (62, 63, 64, 65, 100000):
        for open_, close in ((b"[", b"]"), (b'{"a":', b"}")):
            nested = open_ * n + (b"1" if open_ != b"[" else b"") + close * n
            for field in (b"unknown", b"tools", b"response_format", b"messages", b"prompt"):
                body = b'{"messages": [], "prompt": "a", "max_tokens": 1, '
                body = body.replace(b'"%s": []' % field, b'"x": 1').replace(
                    b'"%s": "a"' % field, b'"y": 1')
                status, _, answer = s.post(COMPLETIONS, body + b'"%s": %s}' % (field, nested))
                if n > 64:
                    assert "nested deeper than 64" in answer["error"]["message"], (n, field, answer)
                deep[status] = deep.get(status, 0) + 1
    assert set(deep) == {200, 400}, deep
    lives(s)


def takes_limits_as_they_are_meant(s):
    """[E5] Counts of tokens, of events and of usage agree."""
    for n, want in ((0, 0), (1, 1), (2, 2), (5, 5), (-1, None), (10**6, None), (None, 16)):
        body = {**completion(prompt="a"), "max_tokens": n}
        usage = s.good(COMPLETIONS, body)["usage"]
        events = s.events(COMPLETIONS, {**body, "stream_options": {"include_usage": True}})
        got = events[-1]["usage"]["completion_tokens"]
        full = 1024 - usage["prompt_tokens"]
        assert usage["completion_tokens"] == got == (full if want is None else want), (n, usage)
        assert [e["choices"][0]["finish_reason"] for e in events[:-1]].count("length") == 1
    for bad in (-2, -100, 1.5, "3", 2**31):
        assert s.post(COMPLETIONS, {**completion(), "max_tokens": bad})[0] == 400, bad
    assert s.post(CHATS, chat(max_completion_tokens=3))[2]["usage"]["completion_tokens"] == 3


def bounds_the_number_of_choices(s):
    """[E6] Each has its index and its own random numbers."""
    for n in (0, -1, 129, 10**6, 2**31, 2**63):
        for path, body in ((COMPLETIONS, completion), (CHATS, chat)):
            status, _, answer = s.post(path, body(n=n))
            assert status == 400, (n, answer)
    for n in (1, 2, 5):
        body = completion(n=n, seed=5, **WILD)
        whole = s.good(COMPLETIONS, body)["choices"]
        assert [c["index"] for c in whole] == list(range(n))
        assert len({c["text"] for c in whole}) == n
        events = s.events(COMPLETIONS, body)
        for c in whole:
            assert c["text"] == "".join(e["choices"][0]["text"] for e in events
                                        if e["choices"][0]["index"] == c["index"])
    assert s.post(COMPLETIONS, completion(n=2, best_of=1))[0] in (200, 400)


def refuses_ids_out_of_the_vocabulary(s):
    """[E10]"""
    n_vocab = s.ask("GET", "/v1/models")[2]["data"][0]["meta"]["n_vocab"]
    for bad in (-1, n_vocab, n_vocab + 1, 2**31, 2**32, "abc", 1.5):
        own = [] if bad == "abc" else [completion(prompt=[bad])]  # a list of texts
        for body in own + [completion(prompt=[[bad]]), completion(stop_token_ids=[bad]),
                           completion(logit_bias={str(bad): 1})]:
            status, _, answer = s.post(COMPLETIONS, body)
            assert status == 400, (bad, body, answer)
    for bias in ("NaN", "1e39", "-1e39", "101", "-101", '"1"', "null"):
        text = json.dumps(completion())[:-1] + ', "logit_bias": {"5": %s}}' % bias
        assert s.post(COMPLETIONS, text)[0] == 400, bias
    for bias in (-100, 100, 0):
        assert s.post(COMPLETIONS, completion(logit_bias={"5": bias}))[0] == 200
    for prompt in ([[]], [[-1]], [[1], []]):
        assert s.post(COMPLETIONS, completion(prompt=prompt))[0] == 400, prompt
    lives(s)


def answers_empty_prompts_beside_others(s):
    """[E11] From the beginning-of-text token where the model has one, or an error; to all alike."""
    beside = threading.Thread(target=lives, args=(s,))
    beside.start()
    same = [s.post(COMPLETIONS, completion(prompt=p)) for p in ("", [""])]
    assert same[0][0] == same[1][0] == 200
    assert same[0][2]["choices"] == same[1][2]["choices"]
    for prompt in ([], None, [[]], {}):
        assert s.post(COMPLETIONS, completion(prompt=prompt))[0] == 400, prompt
    for messages in ([], None, [{"role": "user"}], [{"role": "user", "content": None}]):
        assert s.post(CHATS, chat(messages=messages))[0] == 400, messages
    for content in ("", "   ", [], "\n"):
        assert s.post(CHATS, chat(messages=[{"role": "user", "content": content}]))[0] == 200
    beside.join()


def ends_where_its_context_is_full(s):
    """[D2] Around a prompt that fills it exactly."""
    own = Server(tern, MODEL, "-c", 64)
    for n in range(61, 68):
        status, _, answer = own.post(COMPLETIONS, completion(prompt=[5] * n, max_tokens=100))
        if n < 64:
            assert status == 200 and answer["usage"]["completion_tokens"] == 64 - n
            assert answer["choices"][0]["finish_reason"] == "length"
        else:
            error = answer["error"]
            assert status == 400 and error["code"] == "context_length_exceeded"
            assert "64 tokens" in error["message"] and f"{n} tokens" in error["message"]
    assert own.post(COMPLETIONS, completion(prompt=[5] * 64, max_tokens=0))[0] == 200
    assert own.stop() == 0


# --- answers [E3, E4, E7, E8, E9, E15, E21] ---

def streams_whole_characters(s):
    """[E3, E7, E21] What random tokens write is one object an event, and the same as whole."""
    odd = 0
    for seed in range(12):
        body = completion(max_tokens=60, seed=seed, logprobs=2, **WILD)
        whole = s.good(COMPLETIONS, body)["choices"][0]
        events = s.events(COMPLETIONS, body)
        texts = [e["choices"][0]["text"] for e in events]
        assert "".join(texts) == whole["text"]
        odd += "\ufffd" in whole["text"]
        for t in texts:
            t.encode()
        told = sum(len((e["choices"][0]["logprobs"] or {"tokens": []})["tokens"]) for e in events)
        assert told == 60 == len(whole["logprobs"]["tokens"])
        said = s.good(CHATS, chat(max_tokens=40, seed=seed, logprobs=True, top_logprobs=20, **WILD))
        for t in said["choices"][0]["logprobs"]["content"]:
            assert all(0 <= b < 256 for b in t["bytes"]) and len(t["top_logprobs"]) == 20
            best = [x["logprob"] for x in t["top_logprobs"]]
            assert best == sorted(best, reverse=True) and best[0] <= 0
            assert sum(2.718281828 ** x for x in best) < 1.001
    assert odd > 0, "no seed made bytes that are no text"


def writes_probabilities_that_are_numbers(s):
    """[E8] Under a grammar and with one candidate, where most are impossible."""
    for more in ({"grammar": 'root ::= "a" | "b"'}, {"top_k": 1}, {"logit_bias": {"5": -100}}):
        for top in (0, 1, 20):
            for path, body in ((COMPLETIONS, completion(logprobs=top, **more)),
                               (CHATS, chat(logprobs=True, top_logprobs=top, **more))):
                status, _, answer = s.post(path, body)
                assert status == 200 and "Infinity" not in json.dumps(answer)
                assert "NaN" not in json.dumps(answer)


def shows_usage_where_it_is_asked_for(s):
    """[E9]"""
    for path, body in ((COMPLETIONS, completion), (CHATS, chat)):
        for options, asked in (({"include_usage": True}, True), ({"include_usage": False}, False),
                               ({}, False), (None, False)):
            events = s.events(path, body(stream_options=options))
            assert [e for e in events if not e["choices"]] == (events[-1:] if asked else [])
            assert asked == (events[-1].get("usage") is not None)
            if asked:
                assert all(e["usage"] is None for e in events[:-1])
    assert s.events(CHATS, chat())[-1]["choices"][0]["finish_reason"] == "length"


def never_leaves_a_format_out(s):
    """[E15] The field is named before the first byte of an answer."""
    forms = [({"grammar": "root ::= ("}, "grammar"), ({"grammar": "x ::= y"}, "grammar"),
             ({"json_schema": {"type": "nonsense"}}, "json_schema"),
             ({"json_schema": {"not": {}}}, "json_schema"),
             ({"response_format": {"type": "json_schema"}}, "response_format"),
             ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
              "response_format"),
             ({"response_format": {"type": "xml"}}, "response_format"),
             ({"response_format": {"type": "json_schema", "schema": {
                 "type": "object", "unevaluatedProperties": False}}}, "unevaluatedProperties"),
             ({"response_format": {"type": "json_object", "schema": {"$ref": "http://x"}}}, "ref")]
    for form, named in forms:
        for path, body in ((COMPLETIONS, completion), (CHATS, chat)):
            for stream in (False, True):
                status, headers, answer = s.post(path, body(stream=stream, **form))
                assert status == 400, (form, path, answer)
                assert named in answer["error"]["message"], (form, answer)
    # The other accepted place of a schema is not overlooked.
    schema = {"type": "object", "properties": {"a": {"enum": [7]}}, "required": ["a"]}
    for form in ({"type": "json_schema", "schema": schema}, {"type": "json_object",
                                                              "schema": schema}):
        a = s.good(CHATS, chat(max_tokens=60, response_format=form, ignore_eos=False))
        assert json.loads(a["choices"][0]["message"]["content"])["a"] == 7


def keeps_bad_expressions_from_requests_that_run(s):
    """[F6] Ten of them come while ten requests run: each is refused, and those are what they are
    alone, to the bit, those held to a schema too."""
    schema = {"type": "object", "required": ["a"], "additionalProperties": False,
              "properties": {"a": {"type": "string", "pattern": "^[a-z]{40}$"}}}

    def bad(**schema):
        return {"json_schema": schema}
    wrong = [{"grammar": "root ::= ("}, {"grammar": "root ::= root \"a\""},
             {"grammar": "root ::= \"a\"{5,2}"}, {"grammar": "root ::= nothing"},
             {"grammar": "root ::= [z-a]"}, bad(type="string", pattern="foo**"),
             bad(type="string", pattern="(a"), bad(type="nonsense"),
             bad(**{"$ref": "https://example.com/"}), bad(type="string", pattern="(?=a)")]
    runs = [completion(prompt=f"{i} the keeper of the light", max_tokens=120, logprobs=1,
                       temperature=i % 2, seed=i,
                       **({"json_schema": schema, "ignore_eos": False} if i % 3 == 0 else {}))
            for i in range(10)]
    alone = [kept(s.good(COMPLETIONS, {**b, "cache_prompt": False})) for b in runs]

    def refused(i):
        status, _, answer = s.post(COMPLETIONS, completion(stream=i % 2 == 0, **wrong[i]))
        return status == 400 and answer["error"]["param"] == list(wrong[i])[0] and \
            answer["error"]["message"].startswith(list(wrong[i])[0]) or answer
    calls = []
    for i in range(10):
        calls += [lambda i=i: kept(s.good(COMPLETIONS, runs[i])), lambda i=i: refused(i)]
    for _ in range(2):
        answers = at_once(calls)
        assert answers[0::2] == alone
        assert answers[1::2] == [True] * 10, answers[1::2]


def takes_samplers_by_the_names_of_others(s):
    """Each does what it should, on chats as on completions."""
    def text(path, **more):
        body = {**(completion if path == COMPLETIONS else chat)(max_tokens=20), **more}
        choice = s.good(path, body)["choices"][0]
        return choice["text"] if path == COMPLETIONS else choice["message"]["content"]
    for path in (COMPLETIONS, CHATS):
        greedy, free = text(path), text(path, seed=1, **WILD)
        assert greedy != free
        for one in ({"top_k": 1}, {"top_p": 0}, {"min_p": 1}):
            assert text(path, **{**WILD, "seed": 1, **one}) == greedy, (path, one)
        assert text(path, **{**WILD, "seed": 1}) == free != text(path, **{**WILD, "seed": 2})
        assert text(path, **{**WILD, "seed": 1, "typical_p": 0.05}) != free
        for penalty in ({"repetition_penalty": 50}, {"repeat_penalty": 50},
                        {"presence_penalty": 90}, {"frequency_penalty": 90}):
            assert text(path, repeat_last_n=-1, **penalty) != greedy or len(set(greedy)) > 15
        ids = s.good("/tokenize", {"content": greedy})["tokens"]
        bias = {str(i): -100 for i in ids}
        assert text(path, logit_bias=bias) != greedy
        assert text(path, logit_bias=[[i, False] for i in dict.fromkeys(ids)]) == \
            text(path, logit_bias=bias)
        assert text(path, model="whatever", user="u", unknown={"x": [1]}) == greedy
    assert s.post(CHATS, chat(chat_template_kwargs={"enable_thinking": False},
                              reasoning_effort="none"))[0] == 200


def calls_several_tools_at_once(s):
    body = chat(tools=[TOOL], tool_choice="required", max_tokens=300, seed=0, ignore_eos=False,
                **{**WILD, "temperature": 1})
    most = 0
    for seed in range(8):
        a = s.good(CHATS, {**body, "seed": seed})["choices"][0]
        calls = a["message"]["tool_calls"]
        most = max(most, len(calls))
        assert len({c["id"] for c in calls}) == len(calls)
        events = s.events(CHATS, {**body, "seed": seed})
        got = {}
        for e in events:
            for t in e["choices"][0]["delta"].get("tool_calls", []):
                got[t["index"]] = got.get(t["index"], "") + t["function"]["arguments"]
        assert [got[i] for i in sorted(got)] == [c["function"]["arguments"] for c in calls]
        one = s.good(CHATS, {**body, "seed": seed, "parallel_tool_calls": False})["choices"][0]
        assert len(one["message"]["tool_calls"]) == 1
    assert most > 1, "no seed made two calls"


def refuses_pictures_by_name(s):
    for part in ({"type": "image_url", "image_url": {"url": "http://x/y.png"}},
                 {"type": "input_image", "image_url": "x"}):
        for path, body in ((CHATS, chat(messages=[{"role": "user", "content": [part]}])),
                           (RESPONSES, {"input": [{"role": "user", "content": [part]}]})):
            status, _, answer = s.post(path, body)
            assert status == 400 and "image" in answer["error"]["message"], (path, answer)


# --- connections [E2, E13, E14, E17, E18, E20] ---

def tells_nothing_of_where_it_lies(s):
    """[E14, E20]"""
    told = []
    for path in ("/../etc/passwd", "/%2e%2e/x", "//etc/passwd", "/slots/../x", "/" + "a" * 300,
                 "/.", "/props/..", "/v1/models/" + "x" * 300):
        got = s.raw(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        assert got.startswith(b"HTTP/1.1 404"), (path, got)
        told.append(got.split(b"\r\n\r\n", 1)[1].decode())
    for field in ("model", "filename", "grammar", "prompt"):
        for value in ("", ".", "/", "/etc", "a" * 300):
            told.append(json.dumps(s.post(COMPLETIONS, {"prompt": "a", "max_tokens": 0,
                                                        field: value})[2]))
    told.append(json.dumps(s.ask("GET", "/props")[2]))
    for text in told:
        for secret in (str(tiny), os.getcwd(), "/root", "/home"):
            assert secret not in text, text


def gives_up_in_time(_):
    """Heads and bodies that never end: 408; more clients than may: 503."""
    s = Server(tern, MODEL, "--timeout", 1, "--connections", 6, "-c", 256)
    begun = time.monotonic()
    with s.socket() as head, s.socket() as body:
        head.sendall(b"GET /health HTTP/1.1\r\nHost: loc")
        body.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                     b"application/json\r\nContent-Length: 100\r\n\r\n{")
        assert receive(head).startswith(b"HTTP/1.1 408")
        assert receive(body).startswith(b"HTTP/1.1 408")
    assert 0.9 < time.monotonic() - begun < 4
    held = [s.socket() for _ in range(6)]
    time.sleep(0.1)
    got = s.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 503") and b"Retry-After" in got, got
    [c.close() for c in held]
    time.sleep(0.1)
    assert s.ask("GET", "/health")[0] == 200 and s.stop() == 0


def frames_requests_strictly(s):
    """[E13] What two servers could read in two ways is refused and the connection closed."""
    post = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    hidden = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for lines in (b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                  b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                  b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
                  b"Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n",
                  b"Transfer-Encoding: chunked\r\n\r\n80000000\r\n",
                  b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}x\r\n0\r\n\r\n",
                  b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
                  b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
                  b"Content-Length: +5\r\n\r\n", b"Content-Length: 0x5\r\n\r\n",
                  b"Content-Length: 5 5\r\n\r\n", b"X: a\r\n b\r\n\r\n", b"X y: a\r\n\r\n",
                  b"X: a\n\r\n", b"X: a\rb\r\n\r\n", b"X: a\0b\r\n\r\n"):
        got = s.raw(post + lines + hidden, timeout=5)
        status = got[9:12]
        assert status in (b"400", b"413"), (lines, got)
        assert got.count(b"HTTP/1.1 ") == 1, (lines, got)
    got = s.raw(post + b"".join(b"X%d: a\r\n" % i for i in range(10000)) + b"\r\n")
    assert got.startswith(b"HTTP/1.1 431")
    whole = json.dumps(completion(max_tokens=1)).encode()
    pieces = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (whole[:7], whole[7:])) + b"0\r\n\r\n"
    got = s.raw(post + b"Transfer-Encoding: chunked\r\n\r\n" + pieces + post +
                b"Content-Length: %d\r\n\r\n" % len(whole) + whole + hidden[:-2] +
                b"Connection: close\r\n\r\n")
    assert got.count(b"HTTP/1.1 200") == 3, got


def keeps_keys_and_origins_apart(_):
    """[E18]"""
    s = Server(tern, MODEL, "-c", 256, "--api-key", "0123456789abcdef,kkkk")
    good = b"Authorization: Bearer 0123456789abcdef\r\n"
    get = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    assert s.raw(get + good + b"\r\n").startswith(b"HTTP/1.1 200")
    assert s.raw(get + good + good + b"\r\n").startswith(b"HTTP/1.1 401")
    assert s.raw(get + good + b"Authorization: Bearer x\r\n\r\n").startswith(b"HTTP/1.1 401")
    for header in ("Bearer  0123456789abcdef", "Bearer 0123456789abcde", "Basic 0123456789abcdef",
                   "Bearer 0123456789abcdef0", "Bearer", "0123456789abcdef",
                   "Bearer k", "Bearer kk", "Bearer kkkkkkkk"):
        assert s.ask("GET", "/v1/models", headers={"Authorization": header})[0] == 401, header
    for path in ("/v1/models?api_key=0123456789abcdef", "/slots", "/props", "/metrics",
                 "//v1/models", "/V1/models", "/health/../v1/models"):
        assert s.ask("GET", path)[0] == 401, path
    assert s.ask("GET", "/health")[0] == 200
    for origin in ("http://evil.example", "null"):
        status, headers, _ = s.ask("OPTIONS", "/v1/models", headers={"Origin": origin})
        assert status == 403 and "Access-Control-Allow-Origin" not in headers
    assert s.stop() == 0


def refuses_templates_at_the_start(_):
    """[E19] What a template needs and is not there is said with its line, not left out."""
    for text, named in (("{% break_it %}x", "break_it"),
                        ("a\n{% unknown_tag %}", "line 2"), ("{{ 'a' | nonsense }}", "nonsense"),
                        ("{% for x in %}", "line 1")):
        path = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"template-{os.getpid()}.jinja"
        path.write_text(text)
        done = subprocess.run([tern, "serve", MODEL, "--port", "0", "--chat-template", path],
                              capture_output=True, text=True, timeout=20)
        path.unlink()
        assert done.returncode and named in done.stderr, (text, done.stderr)


def listens_to_this_machine_alone(_):
    s = Server(tern, MODEL, "-c", 256)
    assert "4 sequences" in s.said and "127.0.0.1" in s.said
    inside = open(f"/proc/{s.process.pid}/net/tcp").read()
    at = [x.split()[1] for x in inside.splitlines()[1:] if x.split()[3] == "0A"]
    assert f"0100007F:{s.port:04X}" in at
    assert s.stop() == 0
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    done = subprocess.run([tern, "serve", MODEL, "--port", str(taken.getsockname()[1])],
                          capture_output=True, text=True, timeout=20)
    taken.close()
    assert done.returncode == 1 and "port" in done.stderr


TESTS = [is_equal_in_every_bit_alone_among_31_others_and_after_a_restart,
         is_the_same_where_the_pool_is_full,
         answers_wrong_kinds_with_an_error_or_as_if_they_were_not_there,
         names_the_place_in_what_is_no_json, takes_limits_as_they_are_meant,
         bounds_the_number_of_choices, refuses_ids_out_of_the_vocabulary,
         answers_empty_prompts_beside_others, ends_where_its_context_is_full,
         streams_whole_characters, writes_probabilities_that_are_numbers,
         shows_usage_where_it_is_asked_for, never_leaves_a_format_out,
         keeps_bad_expressions_from_requests_that_run,
         takes_samplers_by_the_names_of_others, calls_several_tools_at_once,
         refuses_pictures_by_name, tells_nothing_of_where_it_lies, gives_up_in_time,
         frames_requests_strictly, keeps_keys_and_origins_apart,
         refuses_templates_at_the_start, listens_to_this_machine_alone]
server = Server(tern, MODEL, "-c", 1024, "--chat-template", "chatml", "--queue", 40)
sys.exit(run(TESTS, server, sys.argv[3:]) > 0)
