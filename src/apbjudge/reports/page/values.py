"""Values as the page can hold them: what says nothing left out, nothing too deep or too large."""

from __future__ import annotations

from typing import Any, cast

import orjson

_DEPTH = 40
"""Values nested deeper are shown as text: what reads and writes the page has limits of its own."""
_EXACT = 2**53
"""Whole numbers beyond it would be rounded in the page, and are shown as text."""


def kept(**values: Any) -> dict[str, Any]:
    """The values that say something; false and zero do."""
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


def holdable(value: Any) -> Any:
    """A value that JSON and the page can hold: neither too deep nor too large a number."""
    try:
        written = orjson.dumps(value, option=orjson.OPT_STRICT_INTEGER)  # none beyond _EXACT
    except orjson.JSONEncodeError:
        return _cut(value)
    nested = written.count(b"{") + written.count(b"[")  # brackets in texts count too: no harm
    return value if nested <= _DEPTH else _cut(value)


def _cut(value: Any, depth: int = 0) -> Any:
    if isinstance(value, dict | list) and depth >= _DEPTH:
        return as_json(cast("object", value))
    if isinstance(value, dict):
        spec = cast("dict[str, Any]", value)
        return {name: _cut(child, depth + 1) for name, child in spec.items()}
    if isinstance(value, list):
        return [_cut(child, depth + 1) for child in cast("list[Any]", value)]
    if isinstance(value, int) and abs(value) > _EXACT:
        return str(value)
    return value


def as_json(value: object) -> str:
    """A value as a text to be read."""
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONEncodeError:
        return "(nested too deeply to be shown)"
