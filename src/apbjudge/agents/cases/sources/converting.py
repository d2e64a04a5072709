"""Arguments in the types that the tool's schema names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

import orjson

from ....protocols.tool_words import properties
from ....records import Tool
from ....records.loose_json import as_list, as_object, is_shallow

CONVERTED = "arguments converted to the schema's types"

_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d{1,2})?", re.ASCII)
_INTEGER = re.compile(r"-?(?:0|[1-9]\d*)", re.ASCII)
_DIGITS = 15  # digits that a float always holds


def converted(arguments: Mapping[str, Any], tool: Tool) -> dict[str, Any]:
    """A call's arguments, converted to the types of the schema if the conversion loses nothing.

    So ``"37.5"`` becomes 37.5 for a number, 5 becomes ``"5"`` for a text, and a text that holds a
    JSON list becomes that list. A value that already has one of the types stays; so does ``"007"``.
    """
    described = properties(tool)
    return {
        name: _converted(value, described[name]) if name in described else value
        for name, value in arguments.items()
    }


def _converted(value: Any, schema: Mapping[str, Any]) -> Any:
    named = schema.get("type")
    types = [named] if isinstance(named, str) else as_list(named) or []
    if (parts := as_object(value)) is not None and "object" in types:
        inner = as_object(schema.get("properties")) or {}
        return {
            key: _converted(part, as_object(inner.get(key)) or {}) for key, part in parts.items()
        }
    if (listed := as_list(value)) is not None and "array" in types:
        return [_converted(part, as_object(schema.get("items")) or {}) for part in listed]
    if any(_is_of(value, kind) for kind in types):
        return value
    for kind in types:
        if (changed := _as(value, kind)) is not None:
            return changed
    return value


def _is_of(value: object, kind: object) -> bool:
    if isinstance(value, bool) or value is None:
        return kind == ("null" if value is None else "boolean")
    if isinstance(value, float):
        return kind == "number"
    if isinstance(value, int):
        return kind in ("number", "integer")
    return isinstance(value, str) and kind == "string"


def _as(value: object, kind: object) -> Any:
    """A value converted to a type; None if it can't be converted without loss."""
    if isinstance(value, str):
        return _read(value.strip(), kind)
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and kind == "integer" and value.is_integer():
        return int(value) if abs(value) < 2**53 else None
    if isinstance(value, int | float) and kind == "string":
        return repr(value)
    return None


def _read(text: str, kind: object) -> Any:
    if kind == "boolean":
        return {"true": True, "false": False}.get(text.lower())
    if kind == "integer":
        return int(text) if _INTEGER.fullmatch(text) and len(text) < 19 else None
    if kind == "number" and _NUMBER.fullmatch(text) and sum(map(str.isdigit, text)) <= _DIGITS:
        number = int(text) if _INTEGER.fullmatch(text) else float(text)
        return number if isfinite(number) else None
    if kind in ("array", "object") and text[:1] == {"array": "[", "object": "{"}[str(kind)]:
        try:
            value: Any = orjson.loads(text)
        except orjson.JSONDecodeError:
            return None
        return value if is_shallow(value) else None
    return None
