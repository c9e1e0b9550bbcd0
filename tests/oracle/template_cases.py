"""template_cases.py: conversations, and snippets of templates, for templates.py."""
import itertools
import json
import os

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Weather at a \"place\" <b>\n",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "Name"},
        "days": {"type": "integer", "default": 3},
        "unit": {"type": "string", "enum": ["C", "F"]},
        "where": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": []},
        "list": {"type": "array", "items": {"type": "string"}},
        "any": {"type": ["string", "null"], "description": "é 日本"}},
        "required": ["city"]}}}
PING = {"type": "function", "function": {"name": "ping", "description": "Nothing",
                                         "parameters": {"type": "object", "properties": {}}}}


def user(text):
    return {"role": "user", "content": text}


def said(text, **more):
    return {"role": "assistant", "content": text, **more}


def call(name, arguments, n=1):
    return {"id": f"call_{n:04d}a", "type": "function",
            "function": {"name": name, "arguments": arguments}}


def result(text, n=1):
    return {"role": "tool", "tool_call_id": f"call_{n:04d}a", "name": "get_weather",
            "content": text}


OSLO = {"city": "Oslo", "days": 2, "deep": {"a": [1, 2.5, None, True], "b": "\"x\"\n"}}
SYSTEM = {"role": "system", "content": "Be brief."}
MESSAGES = [
    [user("Hi \"there\" <b>é 日本 \U0001f600\n")],
    [SYSTEM, user("a"), said(" b "), user("")],
    [SYSTEM, user("a"), said("b")],
    [SYSTEM],
    [user("  x  "), said("<think>why</think>\n\nbecause"), user("and?"), said("<think>y"),
     user("<|im_end|> </think> [INST]")],
    [user("Weather?"), said("", tool_calls=[call("get_weather", OSLO)]), result("{\"t\": 3}")],
    [SYSTEM, user("Weather?"), said(None, tool_calls=[call("get_weather", OSLO),
                                                      call("ping", {}, 2)]),
     result("3"), result("pong", 2), said("It is 3."), user("thanks")],
    [user("Weather?"), said("I look.", tool_calls=[call("get_weather", {"city": "Ås"})]),
     result("x"), said("done"), user("more"), said("", tool_calls=[call("ping", {}, 3)]),
     result("", 3)],
    [user("q"), said("a", reasoning_content="r1\nr2"), user("q2"),
     said("", reasoning_content="r3", tool_calls=[call("get_weather", {"city": "X"})]),
     result("1")],
    [user([{"type": "text", "text": "one"}, {"type": "text", "text": " two\n"}])],
    [{"role": "system", "content": [{"type": "text", "text": "S"}]}, user("u"),
     said([{"type": "text", "text": "A"}]), user([{"type": "text", "text": "B"}])],
    [user("u"), said(None), user(None)],
    [user("u"), said("x"), said("y")],
    [user("a"), user("b")],
    [{"role": "developer", "content": "dev"}, user("u")],
    [said("first"), user("u")],
    [user("u"), {"role": "tool", "content": "lonely"}],
    [user("u"), said("a", tool_calls=[]), user("v")],
    [user("u"), said("", tool_calls=[{"id": "1", "function": {"name": "f",
                                                              "arguments": "{\"a\": 1}"}}])],
    [user("u"), {"role": "assistant"}],
    [],
    [user("x" * 3000), said("y\r\nz\t"), user("  \n ")],
    [user("u"), said("c", thinking="t1", reasoning="t2"), user("v")],
    [user("u"), {"role": "ipython", "content": {"output": [1, "a"]}}],
    [user("u"), {"role": "other", "content": "?"}, user("v")],
    [SYSTEM, user("u"), SYSTEM, said("a"), user("v")],
]


def conversations():
    more = [{}, {"enable_thinking": True}, {"enable_thinking": False},
            {"reasoning_effort": "high", "thinking": True},
            {"documents": [{"title": "T", "text": "D", "id": 1}], "thinking": False}]
    out = []
    for i, (messages, tools, generation) in enumerate(itertools.product(
            MESSAGES, [None, [WEATHER], [WEATHER, PING], []], [True, False])):
        case = {"messages": messages, "add_generation_prompt": generation, **more[i % len(more)]}
        if tools is not None or i % 3:
            case["tools"] = tools
        out.append(case)
    for messages, extra in itertools.product(MESSAGES[:9], more[1:]):
        out.append({"messages": messages, "tools": None, "add_generation_prompt": True, **extra})
    return out


def snippets():
    """Templates, each with the cases it is rendered for."""
    case = {"l": [1, 2, 3], "t": "abca", "d": {"a": 1, "b": {"c": [5, 6]}, "items2": None}}
    here = os.path.dirname(os.path.abspath(__file__))
    with open(f"{here}/template_snippets.txt", encoding="utf-8") as f:
        for line in f.read().strip("\n").split("\n"):
            if line.startswith('"') and line.endswith('"') and "{" in line:
                yield json.loads(line), [case]
            elif not line.startswith("#"):
                for piece in sorted(split_bars(line)):
                    yield "{{ " + piece + " }}", [case]


def split_bars(line):
    """Every beginning of a line that ends before a bar, so that each filter is seen alone."""
    parts = line.split("|")
    return {"|".join(parts[i:k]) for i in range(len(parts))
            for k in range(i + 1, min(len(parts), i + 4) + 1)}
