"""Holds `tern schema` and what is sampled under a schema against the Python package jsonschema.

    schemas.py TERN FOLDER_OF_SMALL_MODELS [documents] [samples] [suite]

Three parts. Documents of each schema below in their canonical form are accepted, and those that
are wrong are refused; so are those of schemas made by chance (TERN_SCHEMAS of them), and what is
like them but wrong. What is sampled at temperature 1.5, from small random models and from the
smallest in TERN_MODELS (TERN_EACH_MODEL: from each), is valid whenever it ends by itself; seeds
begin at TERN_SEED, and there are TERN_SEEDS of them for each. And of the JSON Schema Test Suite,
which the source package of jsonschema carries (looked for in TERN_SCHEMA_SUITE, the folder of its
drafts, and in the cache, fetched with pip otherwise): where a schema is not refused, no document is
accepted that is not valid. Valid ones that are refused are counted: members out of order, whole
numbers written as 1.0.
"""
import decimal
import glob
import importlib.metadata
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import uuid

from growing import DOCUMENTS, GROWING, INTEGER, STRING, closed

try:
    import jsonschema
except ImportError:
    print("skipped: the Python package jsonschema is not installed")
    sys.exit(77)

tern, tiny = sys.argv[1:3]
first_seed = int(os.environ.get("TERN_SEED", "0"))
# Ten that grow, and what each of the other keywords does: schema, valid and wrong documents.
CASES = [(s, [doc], [{}, [], None]) for s, doc in zip(GROWING, DOCUMENTS)]
CASES += [
    ({"type": "object", "properties": {"a": INTEGER, "b": STRING}, "required": ["b"]},
     [{"b": "x"}, {"a": 1, "b": "x"}, {"a": 1, "b": "", "c": [None, {"d": 1}]}],
     [{"a": 1}, {"a": "1", "b": "x"}]),
    ({"type": "object", "properties": {"ab": INTEGER}, "additionalProperties": {"type": "null"}},
     [{}, {"ab": 1, "a": None, "abc": None, "": None}, {"x": None}], [{"x": 1}, {"ab": None}]),
    ({"type": "object", "patternProperties": {"^n_": INTEGER, "^s_": STRING},
      "additionalProperties": False}, [{}, {"n_a": 1, "s_a": "x", "n_": 2}],
     [{"n_a": "x"}, {"o": 1}]),
    ({"type": "array", "items": INTEGER, "minItems": 2, "maxItems": 4},
     [[1, 2], [1, 2, 3, 4]], [[], [1], [1, 2, 3, 4, 5], [1, "2"]]),
    ({"type": "array", "prefixItems": [INTEGER, STRING], "items": False},
     [[], [1], [1, "a"]], [["a"], [1, "a", 2]]),
    ({"anyOf": [INTEGER, {"type": "array", "items": {"$ref": "#"}}]},
     [1, [], [1, [2, [3]]]], ["x", [1, "x"]]),
    ({"oneOf": [{"type": "object", "properties": {"k": {"const": "a"}, "x": INTEGER},
                 "required": ["k", "x"]},
                {"type": "object", "properties": {"k": {"const": "b"}, "y": STRING},
                 "required": ["k"]}]},
     [{"k": "a", "x": 1}, {"k": "b"}, {"k": "b", "y": "s"}], [{"k": "a"}, {"k": "b", "y": 1}]),
    ({"allOf": [closed(a=INTEGER) | {"additionalProperties": True},
                {"properties": {"b": STRING}, "required": ["b"]}]},
     [{"a": 1, "b": "x"}, {"a": 1, "b": "x", "c": 2}], [{"a": 1}, {"b": "x"}]),
    ({"$defs": {"node": {"type": "object", "properties": {
        "v": INTEGER, "next": {"$ref": "#/$defs/node"}}, "required": ["v"]}},
      "$ref": "#/$defs/node"}, [{"v": 1}, {"v": 1, "next": {"v": 2}}], [{}, {"v": 1, "next": {}}]),
    ({"enum": ["a\n", 1, 2.5, None, True, {"k": [1, "x, y"]}]},
     ["a\n", 1, 2.5, None, True, {"k": [1, "x, y"]}], ["a", 2, False, {"k": [1]}]),
    ({"type": ["string", "null"], "minLength": 2, "maxLength": 3},
     ["ab", "\U0001f600\u00e9\"", None], ["", "a", "abcd", 1]),
    ({"type": "string", "maxLength": 2000}, ["x" * 2000], ["x" * 2001]),
    ({"type": "string", "pattern": "^[A-Z][a-z]+( [A-Z][a-z]+)*$", "maxLength": 12},
     ["Ada", "Ada Lovelace"], ["ada", "Ada  L", "Ada Lovelacee"]),
    ({"type": "string", "pattern": "o\"+b"}, ["foo\"\"bar", "o\"b"], ["foobar"]),
    ({"type": "string", "pattern": "(?:ab|c){2,3}$"}, ["abc", "xcc", "ababab"], ["ab", "abcx"]),
    ({"type": "string", "format": "date"}, ["2024-02-29", "1999-12-31", "2000-02-29"],
     ["2023-02-29", "1900-02-29", "2024-13-01", "2024-04-31"]),
    ({"type": "string", "format": "time"}, ["23:59:59Z", "00:00:00.5+01:30"], ["24:00:00Z"]),
    ({"type": "string", "format": "date-time"}, ["2024-02-29T12:00:00Z"], ["2024-02-30T12:00:00Z"]),
    ({"type": "string", "format": "uuid"}, ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567"]),
    ({"type": "string", "format": "email"}, ["a.b+c@example.co.uk"], ["a.example", "@b.c"]),
    ({"type": "string", "format": "ipv4"}, ["0.0.0.0", "255.10.1.99"], ["256.1.1.1", "1.2.3"]),
    ({"type": "string", "format": "uri"}, ["https://example.com:80/a/b?c=d#e", "mailto:a@b.c"],
     ["example.com", "http://a b"]),
    ({"type": "integer", "minimum": -17, "maximum": 203}, [-17, -9, 0, 7, 199, 203],
     [-18, 204, 1000, -100]),
    ({"type": "integer", "exclusiveMinimum": 99}, [100, 5000, 10 ** 17], [99, 5, 0, -100]),
    ({"type": "integer", "maximum": -5}, [-5, -123456], [-4, 0, 5]),
    ({"type": "number", "minimum": 0.25, "exclusiveMaximum": 12.5},
     [0.25, 0.3, 1, 9.99, 12, 12.4999], [0.2499, 12.5, 13, -1, 100]),
    ({"type": "number", "minimum": -1.5, "maximum": 1.5}, [-1.5, -1.49, 0, 1.5, 0.001],
     [-1.51, 1.51, 2, -10]),
    ({"type": "number", "exclusiveMinimum": 0}, [0.001, 5, 123.25], [0, -1]),
    ({"type": "number"}, [0, -1.5, 1e-07, 1.5e+300], ["x"]),
    ({}, [None, {"a": [1, {"b": "c"}]}, "x", 1.5], []),
]
CASES += [
    ({"type": "integer", "multipleOf": 3}, [0, 3, -9, 123456789], [1, -2, 100]),
    ({"type": "integer", "multipleOf": 7, "minimum": 10, "maximum": 100}, [14, 98], [7, 15, 105]),
    ({"type": "number", "multipleOf": 100, "minimum": 0}, [0, 500, 12300], [50, -100, 101]),
    ({"type": "number", "multipleOf": 0.5}, [0.5, -1.5, 3], [0.25, 1.75]),
    ({"type": "number", "multipleOf": 0.01, "exclusiveMinimum": 0, "maximum": 1000},
     [19.99, 0.01, 5, 1000], [0, 0.001, 12.345, 1000.01]),
    ({"type": "object", "properties": {"kind": {"enum": ["a", "b"]}, "x": INTEGER, "y": STRING},
      "required": ["kind"], "if": {"properties": {"kind": {"const": "a"}}},
      "then": {"required": ["x"]}, "else": {"required": ["y"]}},
     [{"kind": "a", "x": 1}, {"kind": "b", "y": "s"}, {"kind": "a", "x": 1, "y": "s"}],
     [{"kind": "a"}, {"kind": "b", "x": 1}, {"kind": "a", "y": "s"}]),
    ({"type": "object", "properties": {"country": STRING, "code": STRING},
      "if": {"properties": {"country": {"const": "NL"}}, "required": ["country"]},
      "then": {"properties": {"code": {"pattern": "^[0-9]{4} [A-Z]{2}$"}}},
      "else": {"properties": {"code": {"pattern": "^[0-9]{5}$"}}}},
     [{}, {"country": "NL", "code": "1234 AB"}, {"country": "US", "code": "12345"},
      {"code": "12345"}, {"country": "NLX"}],
     [{"country": "NL", "code": "12345"}, {"country": "US", "code": "1234 AB"}]),
    ({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"type": "integer"}},
     ["ab", 5], ["a", None, []]),
    ({"type": "string", "not": {"enum": ["a", "bc"]}}, ["b", "abc", ""], ["a", "bc"]),
    ({"type": "string", "not": {"pattern": "^x"}}, ["a", "", "ax"], ["x", "xa"]),
    ({"not": {"type": ["object", "array"]}}, [1, "x", None, True], [{}, []]),
    ({"type": "number", "not": {"type": "integer"}}, [1.5, -0.25], [1, 0]),
    ({"type": "integer", "not": {"const": 7}}, [6, 77, -7], [7]),
    ({"enum": ["a", "b", 3, None], "not": {"type": "string"}}, [3, None], ["a"]),
    ({"type": ["null", "boolean"], "not": {"enum": [True, None]}}, [False], [True, None]),
    ({"type": "object", "not": {"required": ["a"]}}, [{}, {"b": 1}], [{"a": 1}]),
    ({"not": {"not": {"type": "integer"}}}, [1], ["x", 1.5]),
    ({"not": {"anyOf": [{"type": "object"}, {"type": "array"}, {"maxLength": 3}]}},
     ["four"], [{}, "abc", 1]),
    ({"type": "array", "items": {"type": ["integer", "string"]}, "contains": STRING, "maxItems": 3},
     [["a"], [1, "a", 2], ["a", "b"]], [[], [1], [1, 2, 3], [1, 2, 3, "a"]]),
    ({"type": "array", "items": {"enum": [1, 2, 3]}, "contains": {"const": 2}, "maxContains": 2},
     [[2], [1, 2, 3, 2, 1]], [[], [1], [2, 2, 2]]),
    ({"type": "array", "prefixItems": [INTEGER], "contains": {"const": "x"}, "minContains": 2,
      "minItems": 3}, [[1, "x", "x"], [1, None, "x", 2, "x"]], [[1, "x"], ["x", "x", "x"]]),
    ({"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True, "minItems": 1},
     [["a"], ["b", "a", "c"]], [[], ["a", "a"], ["a", "b", "a"]]),
    ({"type": "object", "properties": {"a": INTEGER, "b": INTEGER, "c": INTEGER},
      "additionalProperties": False, "minProperties": 2},
     [{"a": 1, "c": 1}, {"a": 1, "b": 2, "c": 3}], [{}, {"a": 1}]),
    ({"type": "object", "properties": {"a": INTEGER, "b": INTEGER}, "additionalProperties": INTEGER,
      "maxProperties": 3, "minProperties": 2},
     [{"a": 1, "b": 2}, {"a": 1, "x": 2}, {"b": 1, "x": 2, "y": 3}],
     [{"a": 1}, {"x": 1}, {"a": 1, "b": 2, "x": 3, "y": 4}]),
    ({"type": "object", "propertyNames": {"pattern": "^[a-z]{1,3}$"}, "properties": {"ab": INTEGER},
      "additionalProperties": STRING}, [{}, {"ab": 1, "xyz": "s"}], [{"abcd": "s"}, {"A": "s"}]),
    ({"type": "object", "properties": {"n_x": {"minimum": 3}},
      "patternProperties": {"^n_": INTEGER}, "additionalProperties": False},
     [{"n_x": 3, "n_y": 1}], [{"n_x": 2}, {"n_x": 3.5}, {"x": 1}]),
    ({"type": "object", "properties": {"card": STRING, "address": STRING},
      "additionalProperties": False, "dependentRequired": {"card": ["address"]}},
     [{}, {"address": "x"}, {"card": "x", "address": "y"}], [{"card": "x"}]),
    ({"type": "object", "properties": {"card": STRING, "address": STRING},
      "additionalProperties": False,
      "dependentSchemas": {"card": {"properties": {"address": {"minLength": 2}}}}},
     [{"address": "x"}, {"card": "x", "address": "yy"}], [{"card": "x", "address": "y"}]),
    ({"oneOf": [{"type": "object", "properties": {"a": INTEGER}, "required": ["a"]},
                {"type": "object", "properties": {"b": INTEGER}, "required": ["b"]}],
      "additionalProperties": INTEGER}, [{"a": 1}, {"b": 1}], [{}, {"a": 1, "b": 2}]),
    ({"allOf": [{"pattern": "^a"}, {"pattern": "b$"}], "type": "string"}, ["ab", "axb"],
     ["a", "b", "ba"]),
]
# What can not be kept to is refused by name.
REFUSED = {"not": {"format": "date"}, "uniqueItems": True, "multipleOf": 0.12345678,
           "unevaluatedProperties": False, "unevaluatedItems": False, "$dynamicRef": "#x",
           "propertyNames": {"oneOf": [{}]}}


def multiple_of(_, divisor, value, __):
    """As decimal numbers, not as doubles: 19.99 is a multiple of 0.01."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if decimal.Decimal(repr(value)) % decimal.Decimal(repr(divisor)):
            yield jsonschema.ValidationError(f"{value} is not a multiple of {divisor}")


Validator = jsonschema.validators.extend(jsonschema.Draft202012Validator,
                                         {"multipleOf": multiple_of})


def forms(doc):
    yield json.dumps(doc, ensure_ascii=False)
    yield json.dumps(doc, ensure_ascii=False, separators=(",", ":"))
    yield json.dumps(doc, ensure_ascii=False, indent=2)


def match(folder, schema, text):
    with open(f"{folder}/s.json", "w") as f:
        json.dump(schema, f)
    done = subprocess.run([tern, "schema", f"{folder}/s.json", "--match", "-"], text=True,
                          input=text + "\n", capture_output=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def check_documents(folder):
    wrong = 0
    for schema, valid, invalid in CASES:
        checker = Validator(
            schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
        for doc in valid:
            for text in forms(doc):
                code, said = match(folder, schema, text)
                if code or not checker.is_valid(doc):
                    wrong += 1
                    print(f"{json.dumps(schema)[:200]}: {text[:200]}: {said.strip()}")
        for doc in invalid:
            if match(folder, schema, json.dumps(doc, ensure_ascii=False))[0] != 1:
                wrong += 1
                print(f"{json.dumps(schema)[:200]}: {doc!r} is accepted, or the schema refused")
    for keyword, value in REFUSED.items():
        code, said = match(folder, {keyword: value}, "1")
        if code != 3 or f"'{keyword}'" not in said:
            wrong += 1
            print(f"{keyword}: {code} {said}")
    print(f"documents: {len(CASES)} schemas, {wrong} wrong")
    return wrong


# --- schemas and documents of them, both by chance ---

def some_text(r):
    return "".join(r.choice("ab \"\\\u00e9\u20ac\U0001f600\n/9") for _ in range(r.randrange(6)))


def some_number(r):
    low = r.randrange(-300, 300)
    doc = r.choice([low, low + r.randrange(50), low + round(r.random(), 6)])
    schema = {"type": "integer" if isinstance(doc, int) and r.random() < .7 else "number"}
    if r.random() < .6:
        schema[r.choice(["minimum", "exclusiveMinimum"])] = low - 1
    if r.random() < .6:
        schema[r.choice(["maximum", "exclusiveMaximum"])] = low + 51
    return schema, doc


def some_string(r):
    kind, text = r.randrange(4), some_text(r)
    if kind == 0:
        return {"type": "string", "minLength": r.randrange(len(text) + 1),
                "maxLength": len(text) + r.randrange(3)}, text
    if kind == 1:
        return r.choice([
            ({"format": "date"}, "%04d-%02d-%02d" % (r.randrange(1, 9999), r.randrange(1, 13),
                                                     r.randrange(1, 29))),
            ({"format": "ipv4"}, ".".join(str(r.randrange(256)) for _ in range(4))),
            ({"format": "uuid"}, str(uuid.UUID(int=r.getrandbits(128)))),
            ({"format": "email"}, "a.b%d@c-%d.de" % (r.randrange(99), r.randrange(99)))])
    if kind == 2:
        return {"type": "string", "pattern": "^(ab|[c-e]{2}|\\d+)*$", "maxLength": 12}, \
            "".join(r.choice(["ab", "cd", "ee", "7"]) for _ in range(r.randrange(6)))
    return {"enum": [text, text + "x", 1, None]}, text


def some_object(r, depth):
    parts = {f"{r.choice('pqr')}{i}\u00fc"[:r.randrange(2, 4)]: some(r, depth - 1)
             for i in range(r.randrange(5))}
    kept = {k: doc for k, (_, doc) in parts.items() if r.random() < .6}
    schema = {"type": "object", "properties": {k: s for k, (s, _) in parts.items()},
              "required": [k for k in kept if r.random() < .5]}
    if r.random() < .5:
        schema["additionalProperties"] = False
    elif r.random() < .5:
        schema["patternProperties"] = {"^n_": INTEGER}
        kept["n_" + some_text(r)] = r.randrange(9)
    if r.random() < .3:
        schema["minProperties"] = r.randrange(len(kept) + 1)
    if r.random() < .3:
        schema["maxProperties"] = len(kept) + r.randrange(2)
    return schema, kept


def some(r, depth):
    """A schema and a document of it, in canonical form and order."""
    kind = r.randrange(7 if depth else 4)
    if kind < 2:
        return some_number(r) if kind else some_string(r)
    if kind < 4:
        return r.choice([({"type": ["null", "boolean"]}, r.choice([None, True, False])),
                         ({"const": 2.5}, 2.5), ({}, [1, {"a": some_text(r)}])])
    if kind == 4:
        return some_object(r, depth)
    if kind == 5:
        first = [some(r, depth - 1) for _ in range(r.randrange(3))]
        item, doc = some(r, depth - 1)
        n = r.randrange(3)
        return {"type": "array", "prefixItems": [s for s, _ in first], "items": item,
                "minItems": r.randrange(len(first) + n + 1), "maxItems": len(first) + n}, \
            [d for _, d in first] + [doc] * n
    branches = [some(r, depth - 1) for _ in range(r.randrange(1, 3))]
    return {"anyOf": [s for s, _ in branches]}, r.choice(branches)[1]


def changed(r, doc):
    """Another document, not far from it."""
    if isinstance(doc, dict) and doc and r.random() < .8:
        k = r.choice(list(doc))
        return {a: changed(r, b) if a == k else b for a, b in doc.items() if a != k or
                r.random() < .7}
    if isinstance(doc, list) and doc and r.random() < .8:
        i = r.randrange(len(doc))
        return doc[:i] + r.choice([[], [changed(r, doc[i])]]) + doc[i + 1:]
    if isinstance(doc, str):
        return r.choice([doc + "z", doc[1:], 3])
    return r.choice([None, 0, 17, -1000.5, "q", [], {}])


def check_random(folder, n):
    wrong = 0
    kinds = {"accepted": 0, "refused": 0}
    for seed in range(first_seed, first_seed + n):
        r = random.Random(seed)
        schema, doc = some(r, 3)
        checker = Validator(schema,
                            format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
        assert checker.is_valid(doc), (schema, doc)
        for text in (doc, changed(r, doc), changed(r, doc)):
            code, said = match(folder, schema, json.dumps(text, ensure_ascii=False))
            kinds["refused" if code else "accepted"] += 1
            if code > 1 or (code and text is doc) or (not code and not checker.is_valid(text)):
                wrong += 1
                print(f"seed {seed}: {json.dumps(schema)[:300]}: {text!r:.200}: {code} {said}")
    print(f"by chance: {n} schemas, documents {kinds}, {wrong} wrong")
    return wrong


def check_samples(folder, model, n_seeds, n_tokens):
    wrong = ended = n = 0
    with open(f"{folder}/prompts.jsonl", "w") as f:
        for seed in range(first_seed, first_seed + n_seeds):
            print(json.dumps({"prompt": "A document in JSON: ", "seed": seed}), file=f)
    for schema, _, _ in CASES:
        with open(f"{folder}/s.json", "w") as f:
            json.dump(schema, f)
        done = subprocess.run(
            [tern, "run", model, "--schema", f"{folder}/s.json", "--prompts",
             f"{folder}/prompts.jsonl", "--temp", "1.5", "--top-k", "0", "--top-p", "1", "--min-p",
             "0", "-n", str(n_tokens), "-c", str(n_tokens + 64), "--sequences", "4"],
            capture_output=True, text=True, timeout=600)
        if done.returncode:
            print(f"{json.dumps(schema)[:200]}: {done.stderr[-300:]}")
            wrong += 1
            continue
        checker = Validator(
            schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
        for line in done.stdout.strip("\n").split("\n"):
            answer = json.loads(line)
            n += 1
            if answer["stop"] != "eos":
                continue
            ended += 1
            try:
                checker.validate(json.loads(answer["text"]))
            except (ValueError, jsonschema.ValidationError) as e:
                wrong += 1
                print(f"{json.dumps(schema)[:200]}: {answer['text'][:200]!r}: {str(e)[:100]}")
    print(f"samples of {os.path.basename(model)}: {ended} of {n} ended, {wrong} wrong")
    return wrong


def in_order(schema, doc):
    """Members in the order of `properties`, then the others."""
    if not isinstance(doc, dict) or not isinstance(schema, dict):
        return doc
    names = list(schema.get("properties", {})) + list(schema.get("required", []))
    return {k: doc[k] for k in sorted(doc, key=lambda k: names.index(k) if k in names else 999)}


def check_suite(folder, suite):
    wrong = 0
    for draft in ("draft7", "draft2020-12"):
        counts = {"refused": 0, "accepted": 0, "turned away": 0, "right": 0}
        for path in sorted(glob.glob(f"{suite}/{draft}/*.json")):
            for group in json.load(open(path)):
                for case in group["tests"]:
                    text = json.dumps(in_order(group["schema"], case["data"]), ensure_ascii=False)
                    code, said = match(folder, group["schema"], text)
                    if code == 3:
                        counts["refused"] += len(group["tests"])
                        break
                    elif code not in (0, 1) or (code == 0 and not case["valid"]):
                        wrong += 1
                        print(f"{draft} {os.path.basename(path)}: {group['description']}: "
                              f"{text[:100]}: {code} {said.strip()[:100]}")
                    else:
                        kind = "right" if not case["valid"] or not code else "turned away"
                        counts[kind] += 1
                        if kind == "turned away" and os.environ.get("TERN_EACH"):
                            print(f"  {os.path.basename(path)}: {json.dumps(group['schema'])[:150]}"
                                  f": {text[:80]}: {said.strip()[:90]}")
        print(f"suite {draft}: {counts}, {wrong} invalid ones accepted")
    return wrong


def fetch(folder):
    """The suite out of jsonschema's source package, which is not built."""
    package = f"jsonschema=={importlib.metadata.version('jsonschema')}"
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with tempfile.TemporaryDirectory() as d:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary",
                        "jsonschema", "-d", d, package], check=True, capture_output=True,
                       timeout=200)
        with tarfile.open(glob.glob(f"{d}/*.tar.gz")[0]) as tar:
            inside = [m for m in tar if "/json/tests/draft" in m.name and m.isfile()]
            for member in inside:
                path = os.path.join(f"{d}/suite", member.name.split("/json/tests/")[1])
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as f:
                    f.write(tar.extractfile(member).read())
        shutil.move(f"{d}/suite", folder)


def find_suite():
    """The folder of its drafts; None: it is not here, and can not be fetched."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.environ.get("TERN_SCHEMA_SUITE") or os.path.join(cache, "tern", "schema-suite")
    try:
        if not os.path.isdir(folder):
            fetch(folder)
    except (subprocess.SubprocessError, OSError, IndexError) as e:
        print(f"the suite: skipped, it could not be fetched: {e}")
        return None
    return folder


def check_models(folder):
    n_seeds = int(os.environ.get("TERN_SEEDS", "0"))
    bad = check_samples(folder, f"{tiny}/llama-q8_0.gguf", n_seeds or 8, 400)
    real = sorted(glob.glob(os.path.join(os.environ.get("TERN_MODELS", "/nowhere"), "*.gguf")),
                  key=os.path.getsize)[:None if "TERN_EACH_MODEL" in os.environ else 1]
    for one in real:
        bad += check_samples(folder, one, n_seeds or 2, 150)
    return bad


parts = sys.argv[3:] or ["documents", "samples", "suite"]
bad = 0
with tempfile.TemporaryDirectory() as here:
    if "documents" in parts:
        bad += check_documents(here)
        bad += check_random(here, int(os.environ.get("TERN_SCHEMAS", "80")))
    if "samples" in parts:
        bad += check_models(here)
    drafts = find_suite() if "suite" in parts else None
    if drafts:
        bad += check_suite(here, drafts)
sys.exit(bad > 0)
