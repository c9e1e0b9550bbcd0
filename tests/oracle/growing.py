"""Ten schemas that grow, and a document of each: what masks are measured and checked with."""
STRING, INTEGER = {"type": "string"}, {"type": "integer"}


def closed(**properties):
    return {"type": "object", "properties": properties, "required": list(properties),
            "additionalProperties": False}


GROWING = [closed(**{f"field{i}": [STRING, INTEGER, {"type": "boolean"},
                                   {"type": "string", "maxLength": 40},
                                   {"type": "array", "items": {"type": "number"}, "maxItems": 4},
                                   {"enum": ["red", "green", "blue"]},
                                   {"type": "string", "format": "date"},
                                   {"type": "integer", "minimum": 1, "maximum": 5000}][i % 8]
                     for i in range(n)}) for n in (1, 2, 3, 5, 8, 10, 13, 16, 20, 24)]
VALUES = ["a \"b\" \\ \u00e9\u65e5", 17, True, "short", [1, 2.5, -3e-7], "green", "2024-02-29",
          4999]
DOCUMENTS = [{k: VALUES[i % 8] for i, k in enumerate(s["properties"])} for s in GROWING]
