"""Asks a tern serve what clients of OpenAI, llama-server and vLLM ask about conversations, and
reads what it says to who started it.

    check_talk.py TERN TINY
"""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse

from harness import run, tiny_model
from server import Server

tern, tiny = sys.argv[1], pathlib.Path(sys.argv[2])
MODEL = tiny_model(tiny, "llama-q8_0.gguf")
NAME = "sea/light \u00e9"
ASKED = {"role": "user", "content": "what is the sea?"}
BEGUN = {"role": "assistant", "content": "The sea is wi"}
PROMPT = "<|im_start|>user\nwhat is the sea?<|im_end|>\n<|im_start|>assistant\n"
# It does not know what calls are, and takes only texts as content.
PLAIN = ("{% for m in messages %}{{ m.role + ': ' + m.content + '\n' }}{% endfor %}"
         "{% if add_generation_prompt %}assistant: {% endif %}")
# It takes parts too, and knows neither calls nor tools.
TAKES_PARTS = ("{% for m in messages %}{{ m.role }}: {% if m.content is string %}{{ m.content }}"
               "{% else %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}"
               "{{ '\n' }}{% endfor %}")
# Tags in the source make these templates of models that think: one is told to, one begins itself.
THINKS = (PLAIN + "{% if add_generation_prompt %}<think>\n{% endif %}"
          "{% if false %}</think>{% endif %}")
MAY_THINK = PLAIN + "{% if false %}<think></think>{% endif %}"


def chat(*messages, **more):
    return {"messages": list(messages), "max_tokens": 12, "temperature": 0, "ignore_eos": True,
            **more}


def prompt(s, *messages, **more):
    return s.good("/apply-template", {"messages": list(messages), **more})["prompt"]


def names_its_model(s):
    listed = s.ask("GET", "/v1/models")[2]["data"][0]
    assert listed["id"] == NAME
    for spelled in (urllib.parse.quote(NAME), urllib.parse.quote(NAME, safe="")):
        status, _, answer = s.ask("GET", "/v1/models/" + spelled)
        assert status == 200 and answer == listed, answer
    for other in ("nope", "", "sea", "sea%2Flight%20%C3%A9x", "sea%2", "%zz", "sea%00"):
        status, _, answer = s.ask("GET", "/v1/models/" + other)
        assert status == 404 and answer["error"]["message"], other
    assert answer["error"]["code"] == "model_not_found"


def goes_on_with_the_last_message(s):
    assert prompt(s, ASKED) == PROMPT
    assert prompt(s, ASKED, BEGUN) == PROMPT + BEGUN["content"]
    assert prompt(s, ASKED, BEGUN, continue_final_message=True, add_generation_prompt=False) == \
        PROMPT + BEGUN["content"]
    parts = [{"type": "text", "text": "The sea "}, {"type": "text", "text": "is"}]
    assert prompt(s, ASKED, {"role": "assistant", "content": parts}) == PROMPT + "The sea is"
    assert prompt(s, ASKED, {"role": "assistant", "content": ""}) == PROMPT
    # A new message behind it where that is asked for.
    closed = PROMPT + BEGUN["content"] + "<|im_end|>\n"
    assert prompt(s, ASKED, BEGUN, add_generation_prompt=True) == closed + PROMPT[-22:]
    assert prompt(s, ASKED, BEGUN, continue_final_message=False) == closed + PROMPT[-22:]
    assert prompt(s, ASKED, BEGUN, continue_final_message=False,
                  add_generation_prompt=False) == closed
    # What is answered is what follows, as of the same prompt by hand.
    ids = s.good("/tokenize", {"content": PROMPT + BEGUN["content"], "add_special": True})["tokens"]
    whole = s.good("/v1/chat/completions", chat(ASKED, BEGUN))
    text = whole["choices"][0]["message"]["content"]
    assert whole["usage"]["prompt_tokens"] == len(ids)
    assert text == s.good("/v1/completions", {"prompt": ids, "max_tokens": 12, "temperature": 0,
                                              "ignore_eos": True})["choices"][0]["text"]
    pieces = s.events("/v1/chat/completions", chat(ASKED, BEGUN))
    assert "".join(p["choices"][0]["delta"].get("content") or "" for p in pieces) == text
    # Its words are no control tokens.
    end = {"role": "assistant", "content": "</s>" * 9}
    assert s.good("/tokenize", {"content": end["content"]})["tokens"] == [2] * 9
    whole = s.good("/v1/chat/completions", chat(ASKED, end))
    assert whole["usage"]["prompt_tokens"] > len(ids) + 9
    for bad in ([ASKED], [BEGUN], [ASKED, {"role": "assistant", "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "a", "arguments": "{}"}}]}]):
        status, _, answer = s.post("/v1/chat/completions", chat(*bad, continue_final_message=True))
        assert status == 400 and answer["error"]["param"] == "continue_final_message", answer
    for more in ({"continue_final_message": 1}, {"add_generation_prompt": "x"},
                 {"continue_final_message": True, "add_generation_prompt": True}):
        assert s.post("/v1/chat/completions", chat(ASKED, BEGUN, **more))[0] == 400
    assert s.good("/v1/responses", {"input": [ASKED, BEGUN], "max_output_tokens": 2,
                                    "ignore_eos": True})["output"]


def started(template, n_ctx=512):
    with tempfile.NamedTemporaryFile("w", suffix=".jinja") as f:
        f.write(template)
        f.flush()
        return Server(tern, MODEL, "-c", n_ctx, "-np", 2, "--chat-template", f.name)


def goes_on_thinking(_):
    asked = "user: what is the sea?\nassistant: "
    begun = {"role": "assistant", "content": "", "reasoning_content": "It may be"}
    both = {**begun, "content": "The sea"}
    for template, opened in ((THINKS, asked + "<think>\n"), (MAY_THINK, asked)):
        s = started(template)
        assert prompt(s, ASKED) == opened
        assert prompt(s, ASKED, begun) == asked + "<think>\nIt may be"
        assert prompt(s, ASKED, both) == asked + "<think>\nIt may be\n</think>\n\nThe sea"
        text = prompt(s, ASKED, {"role": "assistant", "content": "The sea"})
        assert text == opened + ("</think>\n\n" if opened != asked else "") + "The sea"
        thought = s.good("/v1/chat/completions", chat(ASKED, begun))["choices"][0]["message"]
        assert thought["reasoning_content"] and not thought["content"]
        said = s.good("/v1/chat/completions", chat(ASKED, both))["choices"][0]["message"]
        assert said["content"] and "reasoning_content" not in said
        assert s.stop() == 0


def writes_out_calls_that_a_template_does_not_know(_):
    s = started(PLAIN)
    calls = [{"id": "c", "type": "function",
              "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}]
    result = {"role": "tool", "tool_call_id": "c", "content": "rain"}
    text = ('<tool_call>{"name": "weather", "arguments": {"city": "Oslo"}}</tool_call>\n'
            "tool: rain\nassistant: ")
    asked = "user: what is the sea?\nassistant: "
    for content in ({}, {"content": None}, {"content": ""}):
        assert prompt(s, ASKED, {"role": "assistant", "tool_calls": calls, **content},
                      result) == asked + text
    assert prompt(s, ASKED, {"role": "assistant", "tool_calls": calls, "content": "Well."},
                  result) == asked + "Well.\n" + text
    assert s.stop() == 0
    # One that does know them, and needs a text all the same.
    s = started(PLAIN + "{% if false %}{{ tool_calls }}{% endif %}")
    assert prompt(s, ASKED, {"role": "assistant", "tool_calls": calls}, result) == \
        asked + "\ntool: rain\nassistant: "
    assert s.stop() == 0


# --- what is put together for a template ---

def parts(*texts):
    return [{"type": "text", "text": each} for each in texts]


def joins_parts(_):
    s = started(PLAIN, 20000)
    large = [f"{i}" + "the light is old " * 241 for i in range(128)]
    small = list("the sea is wide and the light is old. " * 200)
    for given, want in ((large, 400), (small, 200)):
        asked, whole = ({"role": "user", "content": x} for x in (parts(*given), "".join(given)))
        assert prompt(s, asked) == "user: " + "".join(given) + "\nassistant: "
        answers = [s.post("/v1/chat/completions", chat(x, max_tokens=2)) for x in (asked, whole)]
        assert answers[0][0] == answers[1][0] == want, answers[0]
        if want == 400:  # more than the context: how much it is, is said
            assert answers[0][2] == answers[1][2]
            assert answers[0][2]["error"]["code"] == "context_length_exceeded"
        else:
            assert answers[0][2]["usage"]["prompt_tokens"] == \
                answers[1][2]["usage"]["prompt_tokens"] > 1000
    # What is no text adds nothing.
    mixed = [*parts("a"), {"type": "refusal", "refusal": "b"}, *parts("\u00e9\U0001f30a")]
    assert prompt(s, {"role": "user", "content": mixed}) == "user: a\u00e9\U0001f30a\nassistant: "
    assert s.stop() == 0


def describes_tools(_):
    s = started(PLAIN, 20000)
    tools = [{"type": "function", "function": {"name": f"tool_{i}", "parameters": {
        "type": "object", "properties": {"at": {"type": "string"}}}}} for i in range(800)]

    def described(n):
        lines = "".join(json.dumps(t["function"]) + "\n" for t in tools[:n])
        return ("You can call these functions:\n" + lines + 'To call one, answer with <tool_call>'
                '{"name": ..., "arguments": {...}}</tool_call> alone.\n')
    asked = "user: what is the sea?\nassistant: "
    for n in (1, 800):
        assert prompt(s, ASKED, tools=tools[:n]) == "system: " + described(n) + asked
    for content in ("Be brief.", parts("Be ", "brief.")):
        assert prompt(s, {"role": "system", "content": content}, ASKED, tools=tools[:2]) == \
            "system: Be brief.\n\n" + described(2) + asked
    for content in ("", [], parts("")):
        assert prompt(s, {"role": "system", "content": content}, ASKED, tools=tools[:2]) == \
            "system: " + described(2) + asked
    assert s.stop() == 0
    # One that takes parts and knows no tools.
    s = started(TAKES_PARTS)
    assert prompt(s, {"role": "system", "content": parts("Be ", "brief.")},
                  {"role": "user", "content": parts("x", "y")}, tools=tools[:2]) == \
        "system: Be brief.\n\n" + described(2) + "user: xy\n"
    assert s.stop() == 0


def writes_many_calls_out(_):
    calls = [{"id": f"c{i}", "type": "function", "function": {
        "name": "weather", "arguments": json.dumps({"city": f"{i} " + "Oslo " * 8})}}
        for i in range(800)]
    texts = ["<tool_call>" + json.dumps({"name": "weather", "arguments": json.loads(
        c["function"]["arguments"])}) + "</tool_call>" for c in calls]
    s = started(PLAIN, 20000)
    asked = "user: what is the sea?\nassistant: "
    assert prompt(s, ASKED, {"role": "assistant", "tool_calls": calls}, ASKED) == \
        asked + "\n".join(texts) + "\n" + asked
    assert s.stop() == 0
    s = started(TAKES_PARTS)
    said = {"role": "assistant", "tool_calls": calls[:2], "content": parts("Well", ".")}
    assert prompt(s, said, {"role": "user", "content": parts("x")}) == \
        "assistant: Well.\n" + "\n".join(texts[:2]) + "\nuser: x\n"
    assert s.stop() == 0


def says_what_has_no_room(_):
    # It can be read, but not written for a template beside what was read.
    s = Server(tern, MODEL, "-c", 512, "-np", 1, "--max-body", "8M", "--chat-template", "chatml")
    given = chat({"role": "user", "content": "the sea " * 560000})
    for path in ("/v1/chat/completions", "/apply-template"):
        status, _, answer = s.post(path, given)
        assert status == 413 and answer["error"]["message"] == \
            "the request needs more memory than one may have", answer
        assert answer["error"]["param"] is None
        assert s.good("/v1/chat/completions", chat(ASKED))["choices"]
    assert s.stop() == 0


def counts_a_templates_names(s):
    for n in (59, 60, 1000):
        status, _, answer = s.post("/v1/chat/completions", chat(ASKED, chat_template_kwargs={
            f"name_{i}": i for i in range(n)}))
        assert status == (200 if n == 59 else 400), answer
        if n > 59:
            assert answer["error"]["param"] == "chat_template_kwargs"
            assert answer["error"]["message"] == \
                f"chat_template_kwargs: {n} given, at most 59", answer


# --- what is said at the start and at the end ---

def says_what_the_context_is(_):
    def said(*args):
        s = Server(tern, MODEL, "-np", 1, *args)
        assert s.stop() == 0
        return s.said
    assert "context 2048," in said() and "WARNING" not in said("-c", 2048)
    assert "WARNING: context 2049, and the model was made for 2048" in said("-c", 2049)
    # A pool for less than the usual context is for one that it holds.
    assert "context 160," in said("--kv-tokens", 160)
    assert "context 2048," in said("--kv-tokens", 5000)
    done = subprocess.run([tern, "serve", MODEL, "-c", "512", "--kv-tokens", "511"],
                          capture_output=True, text=True, timeout=20)
    assert done.returncode == 2, done
    assert done.stderr == "tern serve: --kv-tokens: 511 given, at least --ctx 512 needed\n"


def has_no_page_where_it_is_told_so(_):
    s = Server(tern, MODEL, "-c", 512, "-np", 1, "--no-webui", "--no-warmup", "--log-disable")
    for path in ("/", "/index.html"):
        status, _, answer = s.ask("GET", path)
        assert status == 404 and "--no-webui" in answer["error"]["message"], answer
    assert s.ask("GET", "/v1/models")[0] == 200 and s.stop() == 0
    for flag in ("-v", "--no-slots"):
        done = subprocess.run([tern, "serve", MODEL, flag], capture_output=True, text=True,
                              timeout=20)
        assert done.returncode == 2 and flag + ": cannot be honoured: " in done.stderr


def says_what_it_waits_for_at_the_end(_):
    said = "tern: ends when what is under way is done"
    for busy in (False, True):
        s = Server(tern, MODEL, "-c", 4096, "-np", 1, "--drain", 60)
        if busy:
            c = s.socket()
            text = json.dumps({"prompt": "a", "max_tokens": 4000, "ignore_eos": True,
                               "stream": True}).encode()
            c.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                      b"application/json\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
            assert b"data: " in c.recv(65536) + c.recv(65536)
            s.process.send_signal(signal.SIGINT)
            line = s.process.stderr.readline()
            assert line.startswith(said) and "--drain" in line, line
        begun = time.monotonic()
        assert s.stop(signal.SIGINT) == 0
        assert time.monotonic() - begun < 10 and said not in s.said


TESTS = [names_its_model, goes_on_with_the_last_message, goes_on_thinking,
         writes_out_calls_that_a_template_does_not_know, joins_parts, describes_tools,
         writes_many_calls_out, says_what_has_no_room, counts_a_templates_names,
         says_what_the_context_is, has_no_page_where_it_is_told_so,
         says_what_it_waits_for_at_the_end]
server = Server(tern, MODEL, "-c", 512, "-np", 2, "--chat-template", "chatml", "--alias", NAME)
sys.exit(run(TESTS, server, sys.argv[3:]) > 0)
