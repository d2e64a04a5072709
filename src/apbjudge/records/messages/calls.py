"""Calls with parsed arguments, without copies of calls that the message already has."""

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
    """A call with its arguments as an object, if they can be parsed as one.

    Args:
        name: Name of the tool.
        arguments: The original arguments: a JSON text, or a JSON value.
        call_id: Its id; empty without.
        is_free_text: True if the tool takes a text, not an object.
        problem: The log's complaint about the arguments, if it is a text.
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
    """The equal call from another field of the same message; None without."""
    for call in calls:
        if call.name != name or (call_id and call.call_id and call_id != call.call_id):
            continue
        if call_id == call.call_id != "" or _value(arguments) == _value(call.arguments):
            return call
    return None


def _value(arguments: Any) -> Any:
    """Arguments as JSON values, parsed if they are a text."""
    if isinstance(arguments, str):
        try:
            return orjson.loads(arguments)
        except orjson.JSONDecodeError:
            pass
    return arguments
