"""A call as it is kept: its arguments read, and no copy of one that the message has already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from ..loose_json import MAX_DEPTH, is_shallow
from .model import ToolCall


def call_of(
    name: str,
    arguments: Any,
    call_id: str,
    *,
    is_free_text: bool = False,
    problem: object = None,
) -> ToolCall:
    """A call with its arguments as an object, where they can be read as one.

    Args:
        name: Of the tool.
        arguments: As they came: a JSON text, or what one holds.
        call_id: Its id; empty without.
        is_free_text: True if the tool takes a text, not an object.
        problem: What the log says is wrong with the arguments, where that is a text.
    """
    error = problem if isinstance(problem, str) else ""
    value = arguments
    if type(arguments) is str and not is_free_text:
        try:
            value = orjson.loads(arguments)
        except orjson.JSONDecodeError as fault:
            error = error or str(fault)
        else:
            if len(arguments) > 2 * MAX_DEPTH and not is_shallow(value):
                error = f"expected JSON nested at most {MAX_DEPTH} deep"
    if type(value) is not dict and value is not None and not (error or is_free_text):
        error = f"expected a JSON object, got {type(value).__name__}"
    return ToolCall(name, arguments if error else value, call_id, error)


def copy_among(
    calls: Sequence[ToolCall], name: str, call_id: str, arguments: Any
) -> ToolCall | None:
    """The call that another field of the same message has already; None without."""
    for call in calls:
        if call.name != name or (call_id and call.call_id and call_id != call.call_id):
            continue
        if call_id == call.call_id != "" or _value(arguments) == _value(call.arguments):
            return call
    return None


def _value(arguments: Any) -> Any:
    """Arguments as JSON values where a text holds them."""
    if isinstance(arguments, str):
        try:
            return orjson.loads(arguments)
        except orjson.JSONDecodeError:
            pass
    return arguments
