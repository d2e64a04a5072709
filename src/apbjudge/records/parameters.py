"""Parameter specifications as JSON Schema, whatever notation they come in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

import orjson

ParameterKind = Literal["json_schema", "mapping", "absent"]

COERCIBLE = "x-coercible"
"""Marks a type that is named by a word of a programming language, such as ``float``. Data in such
notations passes ``"37.5"`` for it, and its tools take that."""

_MAX_DEPTH = 100
"""Parts nested deeper stay as they are."""


def read_parameters(specification: object, required: object = None) -> tuple[Any, ParameterKind]:
    """Reads a tool's parameter specification.

    Besides JSON Schema: the same as a JSON string or under ``json`` or ``schema``, other words for
    types (``str``, ``dict``, ``STRING``), ``required: true`` inside a property, and a mapping or
    list of parameters that says somewhere which of them are required. A type nobody knows is left
    out: then any value may be meant.

    Args:
        specification: In any notation, or None.
        required: Names of the required parameters where they stand beside it.

    Returns:
        The JSON Schema, or what came where it can't be read as one; and its kind.
    """
    value: Any = _unwrapped(specification)
    if value is None or value == {}:
        return cast("object", value), "absent"
    if isinstance(value, list):
        specs = _by_name(cast("list[object]", value))
    else:
        specs = cast("dict[str, Any]", value) if isinstance(value, dict) else None
    names = _names(required)
    if specs is None:
        return cast("object", value), "mapping"
    if isinstance(value, dict) and is_schema(specs):
        schema = _plain(specs, 0)
        if names and "required" not in schema and names <= schema["properties"].keys():
            schema = {**schema, "required": list(cast("list[Any]", required))}
        return schema, "json_schema"
    says_required = (names is not None and names <= specs.keys()) or any(
        isinstance(cast("dict[str, Any]", spec).get("required"), bool)
        for spec in specs.values()
        if isinstance(spec, dict)
    )
    if specs and says_required and all(isinstance(spec, dict) for spec in specs.values()):
        schema = _plain({"type": "object", "properties": specs}, 0)
        if names is not None:
            listed = [*schema.get("required", ()), *cast("list[str]", required)]
            schema = {**schema, "required": list(dict.fromkeys(listed))}
        return schema, "json_schema"
    return cast("object", value), "mapping"


def is_schema(spec: Mapping[str, Any]) -> bool:
    """Whether an object is the JSON Schema of an object with described properties."""
    described = spec.get("properties")
    if not isinstance(described, dict) or _type_word(spec.get("type", "object")) != "object":
        return False
    return all(isinstance(p, dict | bool) for p in cast("dict[str, Any]", described).values())


def _unwrapped(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return cast("object", value)
    if isinstance(value, dict) and len(cast("dict[str, Any]", value)) == 1:
        ((key, inner),) = cast("dict[str, Any]", value).items()
        if key in ("json", "schema", "json_schema") and isinstance(inner, dict):
            wrapped = cast("dict[str, Any]", inner)
            return wrapped if is_schema(wrapped) else cast("object", value)
    return cast("object", value)


def _by_name(listed: list[object]) -> dict[str, Any] | None:
    """A list of named parameters as a mapping; None where it is none or a name comes twice."""
    by_name: dict[str, Any] = {}
    for entry in listed:
        spec = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
        name = spec.get("name")
        if not isinstance(name, str) or name in by_name:
            return None
        by_name[name] = {key: part for key, part in spec.items() if key != "name"}
    return by_name


def _names(required: object) -> frozenset[str] | None:
    if not isinstance(required, list):
        return None
    listed = cast("list[object]", required)
    return frozenset(cast("list[str]", listed)) if all(isinstance(n, str) for n in listed) else None


_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_PARTS = frozenset({"items", "additionalProperties"})
_MAPPINGS = frozenset({"properties", "$defs", "definitions"})


def _plain(spec: Any, depth: int) -> Any:
    """The schema in standard words."""
    if not isinstance(spec, dict) or depth > _MAX_DEPTH:
        return cast("object", spec)
    parts = cast("dict[str, Any]", spec)
    plain: dict[str, Any] = {}
    for key, part in parts.items():
        if key == "type":
            plain.update(_typed(part))
        elif key != "required" or not isinstance(part, bool):
            plain[key] = _plain_part(key, part, depth)
    if required := _required_inside(parts):
        listed = parts.get("required")
        names = cast("list[Any]", listed) if isinstance(listed, list) else []
        plain["required"] = [*names, *(name for name in required if name not in names)]
    return plain


def _plain_part(key: str, part: Any, depth: int) -> Any:
    if key in _PARTS:
        return _plain(part, depth + 1)
    if key in _LISTS and isinstance(part, list):
        return [_plain(each, depth + 1) for each in cast("list[Any]", part)]
    if key in _MAPPINGS and isinstance(part, dict):
        parts = cast("dict[str, Any]", part)
        return {name: _plain(each, depth + 1) for name, each in parts.items()}
    return part


def _typed(types: Any) -> dict[str, Any]:
    """The type or types in JSON Schema's words; nothing where one of them is unknown."""
    several = cast("list[Any]", types) if isinstance(types, list) else [types]
    words = [_type_word(each) for each in several]
    if not words or None in words:
        return {}
    is_loose = any(each.strip().lower() not in _TYPE_WORDS.values() for each in several)
    plain = list(dict.fromkeys(words)) if isinstance(types, list) else words[0]
    return {"type": plain, **({COERCIBLE: True} if is_loose else {})}


def _required_inside(spec: dict[str, Any]) -> list[str]:
    """Properties that say of themselves that they are required."""
    described = spec.get("properties")
    if not isinstance(described, dict):
        return []
    return [
        name
        for name, part in cast("dict[str, Any]", described).items()
        if isinstance(part, dict) and cast("dict[str, Any]", part).get("required") is True
    ]


def _type_word(word: Any) -> str | None:
    return _TYPE_WORDS.get(word.strip().lower()) if isinstance(word, str) else None


_TYPE_WORDS: Mapping[str, str] = {
    alias: word
    for word, aliases in {
        "string": "string str text",
        "integer": "integer int int32 int64 long",
        "number": "number float double decimal",
        "boolean": "boolean bool",
        "array": "array list tuple set",
        "object": "object dict dictionary map",
        "null": "null none nonetype",
    }.items()
    for alias in aliases.split()
}
