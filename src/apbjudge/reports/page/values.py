"""Values of the data in a form that JSON and the page can hold."""

from __future__ import annotations

from typing import Any, cast

import orjson

View = dict[str, Any]

_MAX_DEPTH = 40
"""Largest depth of nesting; deeper values are shown as text, since JSON libraries have limits."""
_MAX_EXACT = 2**53
"""Largest exact integer in the page; larger ones would be rounded, and are shown as text."""


def present(**values: Any) -> dict[str, Any]:
    """The values except None and empty ones; false and zero stay. Tuples become lists."""
    return {
        name: [*cast("tuple[Any, ...]", value)] if isinstance(value, tuple) else value
        for name, value in values.items()
        if value not in (None, "", [], {}, ())
    }


def safe(value: Any) -> Any:
    """A value that JSON and the page can hold; too deep parts and huge numbers become text."""
    try:
        written = orjson.dumps(value, option=orjson.OPT_STRICT_INTEGER)  # none beyond _MAX_EXACT
    except orjson.JSONEncodeError:
        return _cut(value)
    nested = written.count(b"{") + written.count(b"[")  # brackets in texts count too: no harm
    return value if nested <= _MAX_DEPTH else _cut(value)


def _cut(value: Any, depth: int = 0) -> Any:
    if isinstance(value, dict | list) and depth >= _MAX_DEPTH:
        return as_json(cast("object", value))
    if isinstance(value, dict):
        spec = cast("dict[str, Any]", value)
        return {name: _cut(child, depth + 1) for name, child in spec.items()}
    if isinstance(value, list):
        return [_cut(child, depth + 1) for child in cast("list[Any]", value)]
    if isinstance(value, int) and abs(value) > _MAX_EXACT:
        return str(value)
    return value


def as_json(value: object) -> str:
    """A value as JSON text for readers."""
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONEncodeError:
        return "(nested too deeply to be shown)"
