"""Schemas that ask for too much, and what tern serve says of them.

    check_schemas.py TERN TINY
"""
import json
import pathlib
import sys
import tempfile
import time

from asking import chat, completion
from harness import run, tiny_model
from server import Server

tern, tiny = sys.argv[1], pathlib.Path(sys.argv[2])
MODEL = tiny_model(tiny, "llama-q8_0.gguf")
SCHEMA = {"type": "object", "required": ["a", "b"], "additionalProperties": False, "properties": {
    "a": {"enum": ["sea", "light"]},
    "b": {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 2}}}


def gives_up_a_schema_whose_client_left(s):
    """Preparation is one thread: what one request asks of it all others wait for."""
    def body(n):
        return completion(json_schema={"properties": {f"k{i}": {
            "type": "string", "pattern": "^(a?){900}a{900}$"} for i in range(n)}})
    start = time.time()
    status, _, answer = s.post("/v1/completions", body(60))
    took = time.time() - start
    assert status == 400 and answer["error"]["param"] == "json_schema", answer
    assert "at #/properties/k0: keyword 'pattern': more than" in answer["error"]["message"], answer
    assert took < 10, took
    for _ in range(12):
        with s.begin("/v1/completions", body(60)):
            time.sleep(0.02)
    start = time.time()
    s.good("/v1/completions", completion(max_tokens=1))
    assert time.time() - start < 1 + 3 * took, (time.time() - start, took)


def says_what_is_wrong_in_words_of_the_schema(s):
    """And not in lines of a grammar that nobody wrote."""
    endless = {"anyOf": [{"type": "null"}, {"$ref": "#"}]}
    many = {"type": "object", "properties": {"a": {"enum": [f"v{i}" for i in range(40000)]}}}
    own = {"anyOf": [{"type": "null"}, {"$ref": "#/properties/a"}]}
    tool = {"type": "function", "function": {"name": "t", "parameters": {
        "type": "object", "properties": {"a": own}}}}
    formats = {"type": "json_schema", "json_schema": {"name": "x", "schema": many}}
    for path, body, param, said in (
            ("/v1/completions", completion(json_schema=endless), "json_schema",
             "json_schema: schema: at #: a reference comes back to itself"),
            ("/v1/completions", completion(response_format=formats), "response_format",
             "response_format: schema: at #/properties/a: its grammar: more states than the "
             "scratch memory holds (74898)"),
            ("/v1/chat/completions", chat(json_schema=many), "json_schema",
             "json_schema: schema: at #/properties/a: its grammar: more states than"),
            ("/v1/chat/completions", chat(tools=[tool]), "tools",
             "tool 't': at #/properties/a: a reference comes back to itself")):
        status, _, answer = s.post(path, body)
        assert status == 400 and answer["error"]["param"] == param, answer
        assert answer["error"]["message"].startswith(said), answer
    tool["function"]["parameters"]["properties"] = {"a": {"type": "array", "uniqueItems": True}}
    for stream in (False, True):
        status, headers, _ = s.post("/v1/chat/completions", chat(tools=[tool], stream=stream))
        assert status == 200 and headers["X-Dropped-Keywords"] == \
            "tool 't': at #/properties/a: keyword 'uniqueItems' is dropped", headers


# Tags in the source make this a template of a model that thinks.
THINKS = ("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
          "{% if add_generation_prompt %}assistant: <think>\n{% endif %}"
          "{% if false %}</think>{% endif %}")
FORMS = [{"json_schema": SCHEMA}, {"response_format": {"type": "json_object"}},
         {"response_format": {"type": "json_schema", "json_schema": {"name": "x",
                                                                     "schema": SCHEMA}}}]


def of_schema(text):
    value = json.loads(text)
    return set(value) == {"a", "b"} and value["a"] in ("sea", "light") and len(value["b"]) == 2


def holds_the_answer_and_not_the_reasoning(_):
    """The schema begins behind the reasoning, however that comes to its end."""
    with tempfile.TemporaryDirectory() as folder:
        template = pathlib.Path(folder) / "thinks.jinja"
        template.write_text(THINKS)
        s = Server(tern, MODEL, "-c", 512, "--chat-template", template)
        for form in FORMS:
            for budget in (0, 5, 20):
                body = chat(max_tokens=300, temperature=1, ignore_eos=False, n=2, seed=budget,
                            reasoning_budget=budget, **form)
                a = s.good("/v1/chat/completions", body)
                assert a["usage"]["completion_tokens_details"]["reasoning_tokens"] == 2 * budget
                events = s.events("/v1/chat/completions", body)
                for c in a["choices"]:
                    m = c["message"]
                    thought = m.get("reasoning_content", "")
                    assert bool(thought) == (budget > 0) and "</think>" not in m["content"], c
                    assert not thought.strip().startswith("{"), c
                    if form == FORMS[1]:  # any object may be longer than there is room for
                        assert m["content"].startswith("{"), c
                    else:
                        assert c["finish_reason"] == "stop" and of_schema(m["content"]), c
                    for key, whole in (("content", m["content"]), ("reasoning_content", thought)):
                        assert whole == "".join(
                            e["choices"][0]["delta"].get(key) or "" for e in events
                            if e["choices"][0]["index"] == c["index"]), (key, c)
            # Reasoning that nothing bounds is not held to it.
            c = s.good("/v1/chat/completions", chat(max_tokens=60, **form))["choices"][0]
            assert c["finish_reason"] == "length" and not c["message"]["content"], c
            assert not c["message"]["reasoning_content"].strip().startswith("{"), c
        a = s.good("/v1/responses", {
            "input": "hi", "reasoning_budget": 5, "max_output_tokens": 300, "temperature": 1,
            "text": {"format": {"type": "json_schema", "name": "x", "schema": SCHEMA}}})
        assert [x["type"] for x in a["output"]] == ["reasoning", "message"], a
        assert of_schema(a["output"][1]["content"][0]["text"]), a
        assert s.stop() == 0


TESTS = [gives_up_a_schema_whose_client_left, says_what_is_wrong_in_words_of_the_schema,
         holds_the_answer_and_not_the_reasoning]
server = Server(tern, MODEL, "-c", 512, "--chat-template", "chatml")
sys.exit(run(TESTS, server, sys.argv[3:]) > 0)
