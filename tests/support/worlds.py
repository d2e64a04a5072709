"""Random toolsets with JSON Schemas, and random plans and steps that are valid under them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

Draw = st.DrawFn
Call = tuple[str, dict[str, Any]]

PROSE = [
    "",
    "taken from step 9, before the result of step 2",
    "as in PREVIOUS_RESULTS of last year",
    "costs $5 (see section {3} [draft])",
    "TBD",
    "<b>bold</b>",
    "{'not': json}",
    "```json\n{}\n```",
    "Košice – Žilina",
]
_DEFS = {
    "place": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]}
}


@dataclass(frozen=True)
class World:
    """The tools of a case."""

    tools: list[dict[str, Any]]

    @property
    def names(self) -> list[str]:
        """Names of the tools, in order."""
        return [tool["name"] for tool in self.tools]

    def schema(self, name: str) -> dict[str, Any] | None:
        """The parameter schema of a tool, None when it has none."""
        return next(t["parameters"] for t in self.tools if t["name"] == name)


def _flat() -> st.SearchStrategy[Any]:
    bounds = st.tuples(st.integers(-9, 9), st.integers(0, 9))
    limited = bounds.map(lambda b: {"type": "integer", "minimum": b[0], "maximum": b[0] + b[1]})
    return st.one_of(
        st.sampled_from(
            [
                {"type": "string"},
                {"type": "string", "format": "date", "description": "a day"},
                {"type": "string", "minLength": 2, "maxLength": 4},
                {"type": "integer"},
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "boolean"},
                {"type": ["string", "null"]},
                {"type": "string", "nullable": True},
                {"type": "string", "enum": ["one way", "return"]},
                {"enum": [1, None, "both", [2]]},
                {"const": "v2"},
                {"$ref": "#/$defs/place"},
                {},
            ]
        ),
        limited,
    )


def _deep(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.builds(
        lambda s, n: {"type": "array", "items": s, "minItems": n}, inner, st.integers(0, 2)
    )
    optional = st.builds(
        lambda s, word: {word: [s, {"type": "null"}]}, inner, st.sampled_from(["anyOf", "oneOf"])
    )
    return lists | optional | objects(inner)


@st.composite
def objects(draw: Draw, inner: st.SearchStrategy[Any]) -> dict[str, Any]:
    """An object schema with some required properties."""
    names = draw(
        st.lists(st.sampled_from(["id", "day", "name", "größe", "a.b"]), unique=True, max_size=3)
    )
    schema: dict[str, Any] = {"type": "object", "properties": {n: draw(inner) for n in names}}
    if names and draw(st.booleans()):
        schema["required"] = draw(st.lists(st.sampled_from(names), unique=True))
    if draw(st.booleans()):
        schema["additionalProperties"] = False
    return schema


schemas = st.recursive(_flat(), _deep, max_leaves=4)


@st.composite
def worlds(draw: Draw, *, bare: bool = True) -> World:
    """A toolset of one to five tools; with ``bare``, some tell nothing of their parameters."""
    name = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{2,9}", fullmatch=True) | st.sampled_from(
        ["web.search", "get-fare", "Übersetze", "api/v2/book"]
    )
    names = draw(st.lists(name, min_size=1, max_size=5, unique_by=str.swapcase))
    tools: list[dict[str, Any]] = []
    for each in names:
        schema = draw(objects(schemas))
        schema["properties"]["note"] = {"type": "string"}
        if schema.get("required"):
            schema["$defs"] = _DEFS
        else:
            schema = {**schema, "required": ["note"], "$defs": _DEFS}
        kept = draw(st.booleans()) or not bare or draw(st.booleans())
        tools.append({"name": each, "description": "…", "parameters": schema if kept else None})
    return World(tools)


def value_of(draw: Draw, schema: dict[str, Any]) -> Any:
    """A value that is valid under a schema made by ``schemas``."""
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return value_of(draw, schema[word][0]) if draw(st.booleans()) else None
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    if "const" in schema:
        return schema["const"]
    if "$ref" in schema:
        return {"town": draw(st.sampled_from(PROSE))}
    kind = schema.get("type")
    if isinstance(kind, list) or schema.get("nullable"):
        return draw(st.none() | st.sampled_from(PROSE))
    return _typed(draw, kind, schema)


def _typed(draw: Draw, kind: str | None, schema: dict[str, Any]) -> Any:
    if kind == "object":
        required = schema.get("required", [])
        given = [n for n in schema["properties"] if n in required or draw(st.booleans())]
        return {n: value_of(draw, schema["properties"][n]) for n in given}
    if kind == "array":
        size = draw(st.integers(schema["minItems"], 3))
        return [value_of(draw, schema["items"]) for _ in range(size)]
    integers = st.integers(schema.get("minimum", -(2**40)), schema.get("maximum", 2**40))
    strings = st.text(min_size=2, max_size=4)
    if "maxLength" not in schema:
        strings = st.text(max_size=8) | st.sampled_from(PROSE)
    numbers = st.floats(0.5, 1e9) | st.integers(1, 99)
    simple = {"integer": integers, "number": numbers, "boolean": st.booleans()}
    return draw(simple.get(kind or "", strings))


def call_of(draw: Draw, world: World, name: str | None = None) -> Call:
    """A valid call of one of the tools."""
    name = name or draw(st.sampled_from(world.names))
    schema = world.schema(name)
    if schema is None:
        return name, draw(
            st.dictionaries(st.text(max_size=5), st.sampled_from([1, None, "x"]), max_size=2)
        )
    return name, _typed(draw, "object", schema)


def with_placeholder(draw: Draw, call: Call, texts: list[str]) -> Call:
    """The call with one value, or one value deep inside a value, replaced by a placeholder."""
    name, arguments = call
    if not arguments:
        return call
    key = draw(st.sampled_from(sorted(arguments)))
    return name, {**arguments, key: _planted(draw, arguments[key], draw(st.sampled_from(texts)))}


def _planted(draw: Draw, value: Any, text: str) -> Any:
    if isinstance(value, list) and value and draw(st.booleans()):
        at = draw(st.integers(0, len(value) - 1))
        return [_planted(draw, v, text) if i == at else v for i, v in enumerate(value)]
    if isinstance(value, dict) and value and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(value)))
        return {**value, key: _planted(draw, value[key], text)}
    return text


def references_to(name: str) -> list[str]:
    """The ways in which an argument may stand for the result of an earlier call."""
    return [f"${name}.id", f"${{{name}.items[0]}}", f"{{{{{name}.result}}}}", f"<{name}>"]


def dressed(draw: Draw, reply: Any) -> str:
    """The reply as models write it: bare, in a fence, amid prose, after thoughts."""
    text = json.dumps(
        reply, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 2]))
    )
    prose = "I looked at [1] and {x}; the fare (see [note]) is fine. Calls: step 3 uses step 1."
    forms = {
        "bare": text,
        "fence": f"```json\n{text}\n```",
        "prose": f"{prose}\n\n{text}\n\nThat is all.",
        "thoughts": f"<think>\nMaybe {{}} or [..]? {prose}\n</think>\n{text}",
    }
    return forms[draw(st.sampled_from(sorted(forms)))]
