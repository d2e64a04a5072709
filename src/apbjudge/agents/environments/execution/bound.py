"""Bound plans: every argument is a literal or names an earlier result, so that code can run them.

A call is ``{"name": …, "arguments": {…}}``. Wherever a value may stand, also inside lists and
objects, ``{"$from": 2, "path": "orders[0].id"}`` takes it from what the second call returned: the
JSON value at that path, or without ``path`` the whole result. Plans in words can't be run so: they
are not executable, which is not a failure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from ....protocols.checks.values import (
    LONGEST_MARK,
    is_previous_result,
    referenced_step,
    referenced_tool,
    result_of_step,
)
from ....records.loose_json import as_list, as_object, json_values

FROM, PATH = "$from", "path"
_PART = re.compile(r"\.?([^.\[\]]+)|\[(\d{1,9})\]")
_BLANK = re.compile(
    r"<[^<>/]+>|\{[\w .\[\]-]+\}|\{\{[^{}]+\}\}"
    r"|(?:the )?(?:result|output|response)s? (?:of|from) call \d+",
    re.IGNORECASE,
)


class UnboundError(Exception):
    """A plan that code can't run, or a reference that leads nowhere; the text says why."""


@dataclass(frozen=True, slots=True)
class BoundCall:
    """A call as the plan has it: its arguments may hold references."""

    name: str
    arguments: Mapping[str, Any]


def bound_plan(response: str) -> tuple[BoundCall, ...]:
    """The calls of a plan; none if it declines the task.

    Args:
        response: The raw reply.

    Raises:
        UnboundError: If it is no bound plan: it can't be read, describes values in words, or refers
            to a call that is not made before.
    """
    chain: list[Any] | None = None
    for value in json_values(response):
        known = as_object(value) or {}
        if str(known.get("status", "")).upper() == "REJECT":
            chain = []
        elif (listed := as_list(known.get("tool_chain"))) is not None:
            chain = listed
    if chain is None:
        raise UnboundError("there is no tool_chain")
    return tuple(_call(entry, n) for n, entry in enumerate(chain, start=1))


def _call(entry: object, number: int) -> BoundCall:
    known = as_object(entry) or {}
    name, arguments = known.get("name"), as_object(known.get("arguments"))
    if not isinstance(name, str):
        raise UnboundError(f"call {number} names no tool")
    if arguments is None:
        raise UnboundError(f"call {number} has no arguments, or only descriptions of them")
    _check(arguments, number)
    return BoundCall(name, arguments)


def _check(value: object, number: int) -> None:
    if (known := as_object(value)) is not None:
        if FROM not in known:
            for each in known.values():
                _check(each, number)
            return
        step = known[FROM]
        if type(step) is not int or not 1 <= step < number:
            raise UnboundError(f"call {number}: {FROM} is no earlier call: {step!r}")
        if not isinstance(known.get(PATH, ""), str) or known.keys() - {FROM, PATH}:
            raise UnboundError(f"call {number}: a reference has {FROM} and {PATH} alone")
    elif (listed := as_list(value)) is not None:
        for each in listed:
            _check(each, number)
    elif is_described(value):
        raise UnboundError(f"call {number}: a value is described, not given: {value!r}")


def is_described(value: object) -> bool:
    """True if a value is surely a placeholder: ``<user id>``, ``${step_1.id}``.

    A text that only might, such as ``#W123``, ``report.pdf`` or a sentence, is a value.
    """
    text = value.strip() if isinstance(value, str) else ""
    return len(text) <= LONGEST_MARK and (
        _BLANK.fullmatch(text) is not None
        or is_previous_result(text)
        or any(of(text) is not None for of in (referenced_tool, referenced_step, result_of_step))
    )


def resolved(arguments: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    """Arguments with what their references stand for.

    Args:
        arguments: Of a call.
        results: Texts of the results of all calls before.

    Raises:
        UnboundError: If a result has nothing at a path.
    """
    return {name: _value(each, results) for name, each in arguments.items()}


def _value(value: Any, results: Sequence[str]) -> Any:
    if (known := as_object(value)) is not None:
        if FROM in known:
            number: int = known[FROM]
            return _at(results[number - 1], known.get(PATH, ""), number)
        return {name: _value(each, results) for name, each in known.items()}
    if (listed := as_list(value)) is not None:
        return [_value(each, results) for each in listed]
    return value


def _at(text: str, path: str, number: int) -> Any:
    try:
        value: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = text
    parts = list(_PART.finditer(path))
    if "".join(part[0] for part in parts) != path:
        raise UnboundError(f"{path!r} is no path: names are set apart by dots, indices in brackets")
    for part in parts:
        key: str | int = part[1] if part[1] is not None else int(part[2])
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            raise UnboundError(f"the result of call {number} has nothing at {path!r}") from None
    return value
