"""Asks a tern serve over a small model what clients ask, and what they should not.

    check_serve.py TERN TINY
"""
import json
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

from asking import chat, completion
from harness import run
from server import Server, receive

tern, tiny = sys.argv[1], pathlib.Path(sys.argv[2])
LIMITS = ["-c", "4096", "-np", "4", "--queue", "6"]
MODEL = tiny / "llama-q8_0.gguf"
if not MODEL.exists():
    print("skipped: no small models (they need numpy)")
    sys.exit(77)
COMPLETIONS = "/v1/completions"
LONG = {"prompt": "a", "max_tokens": 3000, "ignore_eos": True, "temperature": 0, "stream": True}


# --- what is asked for ---

def tells_of_itself(s):
    assert s.ask("GET", "/health")[2] == {"status": "ok"}
    models = s.ask("GET", "/v1/models")[2]
    assert models["data"][0]["id"] == "tiny" and models["object"] == "list"
    assert s.ask("GET", "/props")[2]["total_slots"] == 4
    assert len(s.ask("GET", "/slots")[2]) == 4
    assert "# TYPE tern_requests_total counter" in s.ask("GET", "/metrics")[2]
    assert s.ask("HEAD", "/health")[0] == 200
    status, headers, answer = s.ask("GET", "/nowhere")
    assert status == 404 and answer["error"]["message"]
    assert s.ask("GET", "/v1/completions")[0] == 405


def turns_text_to_tokens_and_back(s):
    ids = s.good("/tokenize", {"content": "the sea"})["tokens"]
    assert ids and s.good("/detokenize", {"tokens": ids})["content"].strip() == "the sea"
    pieces = s.good("/tokenize", {"content": "the sea", "with_pieces": True})["tokens"]
    assert [p["id"] for p in pieces] == ids
    assert s.post("/detokenize", {"tokens": [10**9]})[0] == 400
    assert s.post("/tokenize", {"content": 1})[0] == 400


def completes(s):
    whole = s.good("/v1/completions", completion())
    choice = whole["choices"][0]
    assert whole["object"] == "text_completion" and choice["finish_reason"] == "length"
    assert whole["usage"]["completion_tokens"] == 12
    assert whole["usage"]["total_tokens"] == 12 + whole["usage"]["prompt_tokens"]
    stream = s.events("/v1/completions", completion(stream_options={"include_usage": True}))
    assert "".join(e["choices"][0]["text"] for e in stream if e["choices"]) == choice["text"]
    assert stream[-1]["choices"] == []
    assert stream[-1]["usage"]["completion_tokens"] == 12
    assert [e["choices"][0]["finish_reason"] for e in stream if e["choices"]][-1] == "length"
    assert all("usage" not in e for e in s.events("/v1/completions", completion()))
    ids = s.good("/tokenize", {"content": "the sea was", "add_special": True})["tokens"]
    assert s.good("/v1/completions", completion(prompt=ids))["choices"][0]["text"] == \
        choice["text"]
    many = s.good("/v1/completions", completion(prompt=["the sea was", "a", ids], n=2))
    assert [c["index"] for c in many["choices"]] == list(range(6))
    for i in (0, 1, 4, 5):
        assert many["choices"][i]["text"] == choice["text"]
    for n in (0, 1, 2):
        assert s.good("/v1/completions", completion(max_tokens=n))["usage"][
            "completion_tokens"] == n
        got = s.events("/v1/completions", completion(
            max_tokens=n, stream_options={"include_usage": True}))
        assert got[-1]["usage"]["completion_tokens"] == n


def tells_probabilities(s):
    a = s.good("/v1/completions", completion(logprobs=3))["choices"][0]["logprobs"]
    assert len(a["tokens"]) == len(a["token_logprobs"]) == len(a["top_logprobs"]) == 12
    assert all(p <= 0 for p in a["token_logprobs"]) and all(len(t) <= 3 for t in a["top_logprobs"])
    echo = s.good("/v1/completions", completion(logprobs=1, echo=True, max_tokens=2))
    b = echo["choices"][0]
    assert b["text"].startswith("the sea was") and b["logprobs"]["token_logprobs"][0] is None
    n_prompt = echo["usage"]["prompt_tokens"]
    assert len(b["logprobs"]["tokens"]) == n_prompt + 2 == len(b["logprobs"]["text_offset"])
    stream = s.events("/v1/completions", completion(logprobs=1, echo=True, max_tokens=2))
    assert "".join(e["choices"][0]["text"] for e in stream) == b["text"]
    joined = [p for e in stream for p in (e["choices"][0]["logprobs"] or {"token_logprobs": []})[
        "token_logprobs"]]
    assert joined == b["logprobs"]["token_logprobs"]
    only = s.good("/v1/completions", completion(logprobs=1, echo=True, max_tokens=0))
    assert len(only["choices"][0]["logprobs"]["tokens"]) == n_prompt


def stops_where_it_should(s):
    text = s.good("/v1/completions", completion(max_tokens=40))["choices"][0]["text"]
    for stop in (text[7:9], [text[3:4], text[20:24]], text[30:]):
        first = min(text.find(x) for x in ([stop] if isinstance(stop, str) else stop))
        body = completion(max_tokens=40, stop=stop)
        whole = s.good("/v1/completions", body)["choices"][0]
        assert whole["text"] == text[:first] and whole["finish_reason"] == "stop"
        assert "".join(e["choices"][0]["text"] for e in s.events("/v1/completions", body)) == \
            text[:first]
    tokens = s.good("/v1/completions", completion(logprobs=0))
    assert tokens["choices"][0]["logprobs"]["top_logprobs"][0] == {}


def is_held_to_grammars(s):
    a = s.good("/v1/completions", completion(grammar='root ::= "yes" | "no"'))
    assert a["choices"][0]["text"] in ("yes", "no") and a["choices"][0]["finish_reason"] == "stop"
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    for form in ({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
                 {"type": "json_object", "schema": schema}):
        body = completion(response_format=form, max_tokens=200)
        assert isinstance(json.loads(s.good("/v1/completions", body)["choices"][0]["text"])["a"],
                          int)
    for bad in ({"grammar": "root ::= ("}, {"grammar": 1}, {"json_schema": []},
                {"response_format": {"type": "nonsense"}}, {"response_format": "json"},
                {"response_format": {"type": "json_schema"}},
                {"response_format": {"type": "json_schema", "json_schema": {
                    "schema": {"type": "nonsense"}}}},
                {"json_schema": {"not": {}}},
                {"grammar": 'root ::= "a"', "json_schema": {}}):
        for stream in (False, True):
            status, _, answer = s.post("/v1/completions", completion(stream=stream, **bad))
            assert status == 400 and answer["error"]["message"], (bad, status, answer)


# --- conversations ---

TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 8}},
    "required": ["city"], "additionalProperties": False}}}


def joined(events, key):
    return "".join(e["choices"][0]["delta"].get(key) or "" for e in events if e["choices"])


def converses(s):
    whole = s.good("/v1/chat/completions", chat())
    message = whole["choices"][0]["message"]
    assert whole["object"] == "chat.completion" and message["role"] == "assistant"
    assert message["content"] and whole["choices"][0]["finish_reason"] == "length"
    events = s.events("/v1/chat/completions", chat(stream_options={"include_usage": True}))
    assert events[0]["choices"][0]["delta"]["role"] == "assistant"
    assert joined(events, "content") == message["content"]
    assert events[-1]["choices"] == [] and events[-1]["usage"]["completion_tokens"] == 12
    assert s.good("/apply-template", chat())["prompt"].count("what is the sea?") == 1
    several = s.good("/v1/chat/completions", chat(n=3, temperature=1.3, seed=3))["choices"]
    assert len({c["message"]["content"] for c in several}) > 1
    for c in s.good("/v1/chat/completions", chat(logprobs=True, top_logprobs=2))["choices"]:
        assert len(c["logprobs"]["content"]) == 12
        assert all(len(t["top_logprobs"]) == 2 for t in c["logprobs"]["content"])
    events = s.events("/v1/chat/completions", chat(logprobs=True))
    assert sum(len(e["choices"][0]["logprobs"]["content"]) for e in events
               if e["choices"][0]["logprobs"]) == 12
    parts = [{"type": "text", "text": "what is "}, {"type": "text", "text": "the sea?"}]
    assert s.good("/v1/chat/completions", chat(messages=[{"role": "user", "content": parts}]))[
        "choices"][0]["message"]["content"] == message["content"]


def calls_tools(s):
    named = {"type": "function", "function": {"name": "get_weather"}}
    for choice in ("required", named):
        body = chat(tools=[TOOL], tool_choice=choice, max_tokens=200, parallel_tool_calls=False)
        a = s.good("/v1/chat/completions", body)["choices"][0]
        assert a["finish_reason"] == "tool_calls" and a["message"]["content"] is None, a
        call = a["message"]["tool_calls"][0]
        assert call["type"] == "function" and call["id"]
        assert call["function"]["name"] == "get_weather"
        assert list(json.loads(call["function"]["arguments"])) == ["city"]
        events = s.events("/v1/chat/completions", body)
        deltas = [t for e in events for t in e["choices"][0]["delta"].get("tool_calls", [])]
        assert deltas[0]["id"] and deltas[0]["function"]["name"] == "get_weather"
        assert "".join(d["function"]["arguments"] for d in deltas) == \
            call["function"]["arguments"]
        assert events[-1]["choices"][0]["finish_reason"] == "tool_calls"
    none = s.good("/v1/chat/completions", chat(tools=[TOOL], tool_choice="none"))
    assert "tool_calls" not in none["choices"][0]["message"]
    back = chat(messages=[
        {"role": "user", "content": "weather?"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "get_weather",
                                                         "arguments": '{"city": "Oslo"}'}}]},
        {"role": "tool", "tool_call_id": "c", "content": "rain"}])
    assert s.good("/v1/chat/completions", back)["choices"]


def gives_back_what_it_was_asked(s, body, tool):
    named = {"type": "function", "name": "get_weather"}
    other = {"type": "function", "name": "sea", "description": "\u00e9\n\"", "strict": None,
             "parameters": {"type": "object", "properties": {"x": {"type": "number",
                                                                   "minimum": 0.1}}}}
    usual = {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True}
    many = [{**other, "name": f"tool_{i}", "description": "x" * 600} for i in range(120)]
    for given, want in (
            ({}, {}), (dict.fromkeys(usual), {}), (usual, {}), ({"tools": [tool, other]},) * 2,
            ({"tools": [other, tool], "tool_choice": named, "parallel_tool_calls": False},) * 2,
            ({"tools": [tool], "tool_choice": "none"},) * 2,
            ({"tools": [tool], "tool_choice": "required", "parallel_tool_calls": True},) * 2,
            ({"tools": many[:80], "tool_choice": "none"},) * 2,
            ({"tools": many, "tool_choice": "none"}, {"tool_choice": "none"})):
        want = {**usual, **want}
        whole = s.good("/v1/responses", {**body, **given})
        events = s.named_events("/v1/responses", {**body, **given})
        answers = [whole, *(e["response"] for e in events if "response" in e)]
        assert len(answers) == 4
        for a in answers:
            assert {key: a[key] for key in usual} == want, (given, str(a)[:300])


def responds(s):
    body = {"input": "what is the sea?", "max_output_tokens": 12, "temperature": 0,
            "ignore_eos": True}
    whole = s.good("/v1/responses", body)
    assert whole["object"] == "response" and whole["status"] == "incomplete"
    assert whole["usage"]["output_tokens"] == 12
    said = whole["output"][0]["content"][0]["text"]
    assert said == s.good("/v1/chat/completions", chat())["choices"][0]["message"]["content"]
    items = [{"role": "user", "content": [{"type": "input_text", "text": "what is the sea?"}]}]
    assert s.good("/v1/responses", {**body, "input": items})["output"][0]["content"][0][
        "text"] == said
    events = s.named_events("/v1/responses", body)
    assert [e["type"] for e in events[:4]] == [
        "response.created", "response.in_progress", "response.output_item.added",
        "response.content_part.added"]
    assert "".join(e["delta"] for e in events if e["type"].endswith("text.delta")) == said
    assert events[-1]["type"] == "response.incomplete"
    assert events[-1]["response"]["output"] == [e["item"] for e in events if e["type"].endswith(
        "item.done")]
    tool = {"type": "function", **TOOL["function"]}
    call = {**body, "tools": [tool], "tool_choice": "required", "max_output_tokens": 200,
            "parallel_tool_calls": False}
    a = s.good("/v1/responses", call)
    assert a["status"] == "completed" and a["output"][0]["type"] == "function_call"
    assert list(json.loads(a["output"][0]["arguments"])) == ["city"]
    events = s.named_events("/v1/responses", call)
    assert "".join(e["delta"] for e in events if e["type"].endswith("arguments.delta")) == \
        a["output"][0]["arguments"]
    back = items + [a["output"][0], {"type": "function_call_output", "output": "rain",
                                     "call_id": a["output"][0]["call_id"]}]
    assert s.good("/v1/responses", {**body, "input": back, "tools": [tool]})["output"]
    gives_back_what_it_was_asked(s, body, tool)
    for bad in ({"previous_response_id": "x"}, {"input": None}, {"input": []}, {"input": [1]},
                {"input": [{"type": "nonsense"}]}, {"tools": [{"type": "web_search"}]},
                {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
                {"text": {"format": {"type": "json_schema", "schema": {"type": "x"}}}}):
        status, _, answer = s.post("/v1/responses", {**body, **bad})
        assert status == 400 and answer["error"]["message"], (bad, answer)


BAD_CHATS = [
    {"messages": None}, {"messages": []}, {"messages": "x"}, {"messages": [1]},
    {"messages": [{}]}, {"messages": [{"role": "ghost", "content": "x"}]},
    {"messages": [{"role": "user"}]}, {"messages": [{"role": "user", "content": None}]},
    {"messages": [{"role": "user", "content": 1}]},
    {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
    {"messages": [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "data:"}}]}]},
    {"messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}]},
    {"tools": {}}, {"tools": [{}]}, {"tools": [{"type": "x", "function": {"name": "a"}}]},
    {"tools": [{"type": "function", "function": {"name": ""}}]},
    {"tools": [{"type": "function", "function": {"name": "a", "parameters": []}}]},
    {"tool_choice": "required"}, {"tools": [TOOL], "tool_choice": "maybe"},
    {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "other"}}},
    {"top_logprobs": 2}, {"logprobs": True, "top_logprobs": 21}, {"logprobs": 1},
    {"response_format": {"type": "json_schema", "json_schema": {"schema": {"not": {}}}}},
    {"chat_template_kwargs": []}, {"parallel_tool_calls": "no"}, {"reasoning_effort": 3},
]


def names_what_is_wrong_with_a_conversation(s):
    for bad in BAD_CHATS:
        for stream in (False, True):
            status, _, answer = s.post("/v1/chat/completions", chat(stream=stream, **bad))
            assert status == 400 and answer["error"]["message"], (bad, status, answer)
    status, _, answer = s.post("/v1/chat/completions", chat(
        messages=[{"role": "user", "content": "word " * 9000}]))
    assert status == 400 and answer["error"]["code"] == "context_length_exceeded"


# --- what should not be asked ---

BAD = [
    {"prompt": None}, {"prompt": {}}, {"prompt": []}, {"prompt": [[]]}, {"prompt": [[-1]]},
    {"prompt": [10**9]}, {"prompt": [1.5]}, {"prompt": ["a", 1]}, {"prompt": True},
    {"max_tokens": -2}, {"max_tokens": "x"}, {"max_tokens": 1.5}, {"max_tokens": []},
    {"temperature": -1}, {"temperature": "hot"}, {"temperature": []}, {"top_p": 2},
    {"top_k": "x"}, {"min_p": -0.1}, {"seed": "x"}, {"seed": 1.5}, {"n": 0}, {"n": -1},
    {"n": 129}, {"n": 2**31}, {"n": 10**6}, {"stream": "false"}, {"stream": 1},
    {"stream_options": []}, {"stream_options": {"include_usage": 3}}, {"stop": 1},
    {"stop": [""]}, {"stop": ["a"] * 33}, {"stop": "x" * 10000}, {"stop": [1]},
    {"logit_bias": 5}, {"logit_bias": {"x": 1}}, {"logit_bias": {"-1": 1}},
    {"logit_bias": {str(10**6): 1}}, {"logit_bias": {"1": 101}}, {"logit_bias": {"1": "x"}},
    {"stop_token_ids": [-1]}, {"stop_token_ids": [2**32]}, {"stop_token_ids": 5},
    {"logprobs": 21}, {"logprobs": -1}, {"logprobs": "x"}, {"echo": "yes"}, {"best_of": 3},
    {"repetition_penalty": 0}, {"presence_penalty": 1000}, {"suffix": "x"}, {"ignore_eos": 1},
]


def names_what_is_wrong_with_a_field(s):
    for bad in BAD:
        for stream in ([False, True] if "stream" not in bad else [None]):
            body = completion(**bad)
            if stream:
                body["stream"] = True
            status, _, answer = s.post("/v1/completions", body)
            assert status == 400, (bad, status, answer)
            error = answer["error"]
            name = list(bad)[0]
            assert error["type"] == "invalid_request_error", bad
            assert error["param"].split(".")[0] == name, (bad, error)
            assert error["message"].startswith(name), (bad, error)
            value = bad[name]  # numbers of a range are shown, and it
            if isinstance(value, (int, float)) and not isinstance(value, bool) and \
                    name not in ("stop", "logit_bias", "stop_token_ids", "best_of"):
                assert f"{value} given" in error["message"], (bad, error)
    for absent in ("temperature", "max_tokens", "stop", "seed", "logit_bias", "logprobs", "n",
                   "stream", "stream_options", "response_format", "echo", "suffix"):
        assert s.post("/v1/completions", completion(**{absent: None, "ignore_eos": True}))[0] == 200
    status, _, answer = s.post("/v1/completions", completion(prompt="word " * 9000))
    assert status == 400 and answer["error"]["code"] == "context_length_exceeded"
    assert "4096" in answer["error"]["message"]


def refuses_bodies_that_are_no_json(s):
    cases = [b"", b"{", b"{:", b"[]", b"1", b'"x"', b"null", b'{"prompt": "a", "prompt": "b"}',
             b'{"prompt": "\xff"}', b'{"prompt": 1e999}', b'{"a": ' + b"9" * 40 + b"}",
             b"\xef\xbb\xbf{}", "{}".encode("utf-16"), b'{"prompt": "\\ud83d"}',
             b'{"prompt": "\\u0000"}', b"[" * 100000, b'{"a":' * 100000, b'{"a": NaN}', b"{} {}"]
    for field in ("x", "messages", "tools", "response_format"):
        cases.append(b'{"%s": %s}' % (field.encode(), b"[" * 70 + b"]" * 70))
    for body in cases:
        for path in ("/v1/completions", "/v1/chat/completions", "/tokenize"):
            status, _, answer = s.post(path, body)
            assert status == 400 and answer["error"]["message"], (body[:40], status, answer)
    many = b'{"prompt": [' + b"1," * 500000 + b"1]}"
    assert s.post("/v1/completions", many)[0] in (400, 413)


def lets_in_who_may_ask(s):
    get = b"GET /v1/models HTTP/1.1\r\nConnection: close\r\n"
    for host, status in ((b"localhost", b"200"), (b"127.0.0.1:%d" % s.port, b"200"),
                         (b"[::1]:1", b"200"), (b"evil.example", b"403"), (b"", b"403"),
                         (b"localhost.evil.example", b"403")):
        got = s.raw(get + b"Host: " + host + b"\r\n\r\n")
        assert got.startswith(b"HTTP/1.1 " + status), (host, got)
    own = f"http://127.0.0.1:{s.port}"
    for origin, status in ((own, 200), ("http://good.example", 200), ("http://evil.example", 403),
                           ("null", 403), ("http://good.example.evil.example", 403)):
        got, headers, _ = s.post("/v1/completions", completion(), headers={"Origin": origin})
        assert got == status, (origin, got)
        assert (headers["Access-Control-Allow-Origin"] == origin) == (origin ==
                                                                      "http://good.example")
        got, headers, _ = s.ask("OPTIONS", "/v1/completions", headers={"Origin": origin})
        assert got == (204 if origin == "http://good.example" else 405 if origin == own else 403)
    for kind in (None, "text/plain", "application/x-www-form-urlencoded", "application/jsonx"):
        headers = {"Content-Type": kind or ""}
        assert s.post("/v1/completions", completion(), headers=headers)[0] == 415
    assert s.post("/v1/completions", completion(),
                  headers={"Content-Type": "Application/JSON; charset=utf-8"})[0] == 200


# --- many at once ---

def gives_every_stream_a_token_a_step(s):
    before = s.metric("steps_total")
    threads = [threading.Thread(target=s.events, args=("/v1/completions", LONG))
               for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    steps = s.metric("steps_total") - before
    # A stream begins a while after the one before it, and a step is done in 50 us.
    assert steps < 2 * LONG["max_tokens"], f"{steps} steps for 4 streams of 3000 tokens"


def is_the_same_alone_and_among_others(s):
    bodies = [completion(prompt=f"{i} the keeper of the light", logprobs=2, temperature=0.9,
                         seed=i, max_tokens=30) for i in range(9)]
    alone = [s.good("/v1/completions", b)["choices"] for b in bodies]
    together = [None] * len(bodies)

    def ask(i):
        together[i] = s.good("/v1/completions", bodies[i])["choices"]
    threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(bodies))]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert together == alone
    several = s.good("/v1/completions", completion(n=3, temperature=1.2, seed=5, max_tokens=30))
    assert len({c["text"] for c in several["choices"]}) > 1


def finds_prefixes_again(s):
    body = completion(prompt="The sea is wide and the light is old. " * 20)
    s.good("/v1/completions", body)
    cached = s.good("/v1/completions", body)["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert cached > 64, cached
    body["cache_prompt"] = False
    assert s.good("/v1/completions", body)["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


def ends_the_work_of_who_has_left(s):
    for how in ("close", "half", "reset", "whole"):
        c = s.begin(COMPLETIONS, LONG)
        if how == "whole":
            c.close()
            c = s.socket()
            text = json.dumps(LONG).encode()
            c.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                      b"application/json\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
            time.sleep(0.05)
        else:
            assert b"data: " in c.recv(65536) + c.recv(65536)
        if how == "half":
            c.shutdown(socket.SHUT_WR)
        elif how == "reset":
            c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            c.close()
        else:
            c.close()
        assert s.wait_idle() < 1, how
        c.close()
    drops = [s.begin(COMPLETIONS, LONG) for _ in range(50)]
    [c.close() for c in drops]
    begun = time.monotonic()
    while s.post("/v1/completions", completion())[0] != 200:
        assert time.monotonic() - begun < 1


def serves_others_beside_clients_that_dawdle(s):
    idle = [s.socket() for _ in range(100)]
    slow_heads = [s.socket() for _ in range(16)]
    readers = []
    for _ in range(3):
        c = s.begin(COMPLETIONS, LONG)
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        readers.append(c)
    times = []
    for i in range(20):
        for c in slow_heads:
            c.sendall(b"GET /health HTTP/1.1\r\n"[i:i + 1])
        begun = time.monotonic()
        assert s.ask("GET", "/health")[0] == 200
        times.append(time.monotonic() - begun)
    assert max(times) < 1, times
    begun = time.monotonic()
    s.good("/v1/completions", completion())
    assert time.monotonic() - begun < 5
    [c.close() for c in idle + slow_heads + readers]
    s.wait_idle()


def tells_those_to_come_again_for_whom_there_is_no_room(s):
    # All have to be in, and none out: a busy machine takes long for the one, a fast one has done
    # with ten times 3,000 tokens in half a second.
    for wait in (0.005, 0.01, 0.02, 0.05, 0.1, 0.3):
        all_places = [s.begin(COMPLETIONS, LONG) for _ in range(4 + 6)]
        time.sleep(wait)
        status, headers, answer = s.post("/v1/completions", completion())
        assert s.ask("GET", "/health")[0] == 200
        [c.close() for c in all_places]
        s.wait_idle()
        if status == 429:
            break
    assert status == 429 and headers["Retry-After"], (status, answer)
    assert s.post("/v1/completions", completion())[0] == 200


def bounds_bodies_and_heads(s):
    head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    assert s.raw(head + b"Content-Length: 1073741824\r\n\r\n").startswith(b"HTTP/1.1 413")
    with s.socket() as c:
        c.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(40):
                c.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        except OSError:
            pass
        assert receive(c).startswith(b"HTTP/1.1 413")
    assert s.raw(head + b"X: " + b"a" * 100000 + b"\r\n\r\n").startswith(b"HTTP/1.1 431")
    assert s.raw(b"GET / HTTP/1.1\nHost: a\n\n").startswith(b"HTTP/1.1 400")
    got = s.raw(head + b"Expect: 100-continue\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
    assert got.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 400")


def keeps_nothing_of_what_has_ended(s):
    def mixed(i):
        kinds = [lambda: s.post("/v1/completions", completion()),
                 lambda: s.events("/v1/completions", completion()),
                 lambda: s.post("/v1/completions", b"{"),
                 lambda: s.post("/v1/completions", completion(prompt="word " * 9000)),
                 lambda: s.begin(COMPLETIONS, LONG).close(),
                 lambda: s.post("/v1/completions", completion(grammar='root ::= "a"')),
                 lambda: s.post("/v1/completions", completion(n=4, logprobs=5))]
        kinds[i % len(kinds)]()
    for i in range(140):
        mixed(i)
    s.wait_idle()
    fds, kib = s.descriptors(), s.anonymous_kib()
    for i in range(210):
        mixed(i)
    s.wait_idle()
    time.sleep(0.1)
    assert s.descriptors() <= fds, (fds, s.descriptors())
    assert s.anonymous_kib() <= kib + 64, (kib, s.anonymous_kib())
    plan = subprocess.run([tern, "plan", MODEL, "--server", "--json", "-t", "1", *LIMITS],
                          capture_output=True, check=True)
    assert s.anonymous_kib() * 1024 <= json.loads(plan.stdout)["process_bytes"]


def ends_when_it_is_told_to(_):
    s = Server(tern, MODEL, "-c", 4096)
    c = s.begin(COMPLETIONS, {**LONG, "max_tokens": 50})
    time.sleep(0.05)
    s.process.send_signal(signal.SIGTERM)
    assert receive(c).endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
    assert s.stop() == 0
    s = Server(tern, MODEL, "-c", 4096, "--drain", 0)
    cut = [s.begin(COMPLETIONS, LONG) for _ in range(6)]
    time.sleep(0.1)
    assert s.stop(signal.SIGINT, 5) == 0
    assert all(b"[DONE]" not in receive(c) for c in cut)


def wants_a_key_where_there_are_some(_):
    s = Server(tern, MODEL, "--api-key", "k1,k2", "--host", "0.0.0.0")
    assert "WARNING" not in s.said
    for header, status in (({}, 401), ({"Authorization": "Bearer k1"}, 200),
                           ({"Authorization": "bearer k2"}, 200), ({"x-api-key": "k2"}, 200),
                           ({"Authorization": "Bearer k"}, 401), ({"Authorization": "k1"}, 401),
                           ({"Authorization": "Bearer k1x"}, 401),
                           ({"Authorization": "Bearer k1", "x-api-key": "k1"}, 401),
                           ({"Authorization": "Bearer "}, 401)):
        got, _, answer = s.ask("GET", "/v1/models", headers=header)
        assert got == status, (header, got, answer)
    assert s.ask("GET", "/health")[0] == 200
    for path in ("//v1/models", "/v1/models/", "/V1/models", "/health/../v1/models",
                 "/health?/v1/models&key=k1"):
        assert s.ask("GET", path)[0] in (401, 200) and "data" not in s.ask("GET", path)[2], path
    assert s.stop() == 0
    s = Server(tern, MODEL, "--host", "0.0.0.0")
    assert s.stop() == 0 and "WARNING" in s.said


def takes_options_by_the_names_of_others(_):
    s = Server(tern, MODEL, "--max-model-len", 512, "--max-num-seqs", 3, "--kv-cache-dtype", "q8_0",
               "--served-model-name", "other")
    props = s.ask("GET", "/props")[2]
    assert props["default_generation_settings"]["n_ctx"] == 512 and props["total_slots"] == 3
    assert s.ask("GET", "/v1/models")[2]["data"][0]["id"] == "other"
    assert "kv q8_0 q8_0" in s.said and s.stop() == 0
    for wrong in (["--kv-cache-dtype", "fp8"], ["--api-key", ""], ["--tensor-parallel-size", "2"]):
        done = subprocess.run([tern, "serve", MODEL, "--port", "0", *wrong], capture_output=True)
        assert done.returncode and wrong[0].encode() in done.stderr, done.stderr


TESTS = [tells_of_itself, turns_text_to_tokens_and_back, completes, tells_probabilities,
         stops_where_it_should, is_held_to_grammars, converses, calls_tools, responds,
         names_what_is_wrong_with_a_conversation, names_what_is_wrong_with_a_field,
         refuses_bodies_that_are_no_json, lets_in_who_may_ask, gives_every_stream_a_token_a_step,
         is_the_same_alone_and_among_others, finds_prefixes_again, ends_the_work_of_who_has_left,
         serves_others_beside_clients_that_dawdle,
         tells_those_to_come_again_for_whom_there_is_no_room, bounds_bodies_and_heads,
         keeps_nothing_of_what_has_ended, ends_when_it_is_told_to,
         wants_a_key_where_there_are_some, takes_options_by_the_names_of_others]

server = Server(tern, MODEL, *LIMITS, "--chat-template", "chatml", "--alias", "tiny",
                "--cors-origin", "http://good.example,http://fine.example")
sys.exit(run(TESTS, server, sys.argv[3:]) > 0)
