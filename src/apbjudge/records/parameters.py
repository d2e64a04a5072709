"""Parameter specifications in any notation as JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import orjson

from .loose_json import as_list, as_object

ParameterKind = Literal["json_schema", "mapping", "absent"]

COERCIBLE = "x-coercible"
"""Marks a type that is named by a word of a programming language, such as ``float``. Data in such
notations passes ``"37.5"`` for it, which its tools accept."""

_MAX_DEPTH = 100
"""Parts nested deeper stay as they are."""


def read_parameters(specification: object, required: object = None) -> tuple[Any, ParameterKind]:
    """Reads a tool's parameter specification.

    Accepted besides JSON Schema: the same as a JSON string or under ``json`` or ``schema``, other
    words for types (``str``, ``dict``, ``STRING``), ``required: true`` inside a property, and a
    mapping or list of parameters that states in some entry if it is required. An unknown type is
    left out, since it may allow any value.

    Args:
        specification: In any notation, or None.
        required: Names of the required parameters, if they are stated separately.

    Returns:
        The JSON Schema, or the specification as it came if it can't be read as one; and its kind.
    """
    value = _unwrapped(specification)
    if value is None or value == {}:
        return value, "absent"
    listed = as_list(value)
    specs = as_object(value) if listed is None else _by_name(listed)
    if specs is None:
        return value, "mapping"
    names = as_list(required)
    if names is not None and not all(isinstance(name, str) for name in names):
        names = None
    if listed is None and is_schema(specs):
        schema = _plain(specs, 0)
        if names and "required" not in schema and set(names) <= schema["properties"].keys():
            schema["required"] = list(names)
        return schema, "json_schema"
    parameters = [spec for each in specs.values() if (spec := as_object(each)) is not None]
    says_required = (names is not None and set(names) <= specs.keys()) or any(
        isinstance(spec.get("required"), bool) for spec in parameters
    )
    if not specs or not says_required or len(parameters) < len(specs):
        return value, "mapping"
    schema = _plain({"type": "object", "properties": specs}, 0)
    if names is not None:
        schema["required"] = list(dict.fromkeys([*schema.get("required", ()), *names]))
    return schema, "json_schema"


def is_schema(spec: Mapping[str, Any]) -> bool:
    """True if an object is the JSON Schema of an object with described properties."""
    described = as_object(spec.get("properties"))
    if described is None or _type_word(spec.get("type", "object")) != "object":
        return False
    return all(isinstance(part, dict | bool) for part in described.values())


def parsed(value: object) -> object:
    """A JSON text of an object or a list, parsed; anything else as it is."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
    return value


def _unwrapped(value: object) -> object:
    value = parsed(value)
    spec = as_object(value) or {}
    inner = next((spec[key] for key in ("json", "schema", "json_schema") if key in spec), None)
    wrapped = as_object(inner) if len(spec) == 1 else None
    return wrapped if wrapped is not None and is_schema(wrapped) else value


def _by_name(listed: list[object]) -> dict[str, Any] | None:
    """A list of named parameters as a mapping; None if it is not one or a name occurs twice."""
    by_name: dict[str, Any] = {}
    for entry in listed:
        spec = as_object(entry) or {}
        name = spec.get("name")
        if not isinstance(name, str) or name in by_name:
            return None
        by_name[name] = {key: part for key, part in spec.items() if key != "name"}
    return by_name


_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_PARTS = frozenset({"items", "additionalProperties"})
_MAPPINGS = frozenset({"properties", "$defs", "definitions"})


def _plain(spec: Any, depth: int) -> Any:
    """The schema in standard words."""
    parts = as_object(spec)
    if parts is None or depth > _MAX_DEPTH:
        return spec
    plain: dict[str, Any] = {}
    for key, part in parts.items():
        if key == "type":
            plain.update(_typed(part))
        elif key != "required" or not isinstance(part, bool):
            plain[key] = _plain_part(key, part, depth + 1)
    properties = as_object(parts.get("properties")) or {}
    required = [
        n for n, part in properties.items() if (as_object(part) or {}).get("required") is True
    ]
    if required:
        names = as_list(parts.get("required")) or []
        plain["required"] = [*names, *(name for name in required if name not in names)]
    return plain


def _plain_part(key: str, part: Any, depth: int) -> Any:
    if key in _PARTS:
        return _plain(part, depth)
    if key in _LISTS and (listed := as_list(part)) is not None:
        return [_plain(each, depth) for each in listed]
    if key in _MAPPINGS and (parts := as_object(part)) is not None:
        return {name: _plain(each, depth) for name, each in parts.items()}
    return part


def _typed(types: Any) -> dict[str, Any]:
    """The type or types in JSON Schema's words; nothing if one of them is unknown."""
    listed = as_list(types)
    several = [types] if listed is None else listed
    words = [_type_word(each) for each in several]
    if not words or None in words:
        return {}
    is_loose = any(each.strip().lower() not in _TYPE_WORDS.values() for each in several)
    plain = words[0] if listed is None else list(dict.fromkeys(words))
    return {"type": plain, **({COERCIBLE: True} if is_loose else {})}


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
