"""Calls that are written as source text, such as ``book(table=4, day='Monday')``: never run."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping
from math import isfinite
from typing import Any, cast

from ....errors import RowError
from ....protocols.tool_words import properties
from ....records import Toolset

_LONGEST = 100_000
_EXPECTED = "a call of literal values, such as book(table=4)"


def call_of_text(text: str, toolset: Toolset, field: str) -> tuple[str, Mapping[str, Any]]:
    """Reads a call of literal values.

    Values without a name go to the tool's parameters in their order.

    Args:
        text: A name, maybe with dots, and its arguments in brackets.
        toolset: The tools offered.
        field: Its field, for messages.

    Returns:
        The name and the arguments as JSON values; tuples become lists.

    Raises:
        RowError: If it is anything else, or a value is no JSON.
    """
    if len(text) > _LONGEST:
        raise RowError(field, f"a call of at most {_LONGEST} characters", text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in texts that Python does not know
            call = ast.parse(text.strip(), mode="eval").body
            if not isinstance(call, ast.Call):
                raise RowError(field, _EXPECTED, text)
            name = ast.unparse(call.func) if _is_name(call.func) else ""
            positional = [ast.literal_eval(value) for value in call.args]
            named = {key.arg: ast.literal_eval(key.value) for key in call.keywords}
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        raise RowError(field, _EXPECTED, text) from None
    tool = toolset.by_name.get(name)
    places = list(properties(tool)) if tool else []
    if not name or None in named or (positional and len(positional) > len(places) and tool):
        raise RowError(field, _EXPECTED, text)
    arguments: dict[str, Any] = dict(zip(places, positional, strict=False))
    if tool and not arguments.keys().isdisjoint(named):
        raise RowError(field, "a call that passes each parameter once", text)
    arguments |= {str(key): value for key, value in named.items()}
    return name, {key: _json(value, field) for key, value in arguments.items()}


def _is_name(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _json(value: object, field: str) -> Any:
    """A literal as a JSON value."""
    if isinstance(value, dict):
        members = cast("dict[object, object]", value)
        if all(isinstance(key, str) for key in members):
            return {str(key): _json(part, field) for key, part in members.items()}
    if isinstance(value, list | tuple):
        return [_json(part, field) for part in cast("list[object]", value)]
    if isinstance(value, str):
        is_json = _is_unicode(value)
    elif isinstance(value, int):
        is_json = -(2**63) <= value < 2**64
    else:
        is_json = value is None or (isinstance(value, float) and isfinite(value))
    if is_json:
        return cast("Any", value)
    raise RowError(field, "values that JSON has", cast("object", value))


def _is_unicode(text: str) -> bool:
    """True if a text has no half of a surrogate pair, as an escape can put there."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)
