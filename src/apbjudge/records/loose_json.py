"""JSON as models write it: amid prose, with numbers and characters that libraries refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

import orjson


def as_object(value: object) -> dict[str, Any] | None:
    """A JSON object; None for any other value."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def as_list(value: object) -> list[Any] | None:
    """A JSON array; None for any other value."""
    return cast("list[Any]", value) if isinstance(value, list) else None


_THINKING_END = re.compile(r"</think(?:ing)?>", re.IGNORECASE)


def json_values(text: str, words: list[str] | None = None) -> Iterator[object]:
    """Yields the JSON values of a reply in order; the last usable one is the answer.

    Args:
        text: The reply.
        words: Gets what stands before, between and after the values, once all are read; nothing
            where the reply is one value and no more.
    """
    try:
        yield _shallow(orjson.loads(text))
    except ValueError:
        body = after_thinking(_LONE_SURROGATE.sub(_replaced, text))
    else:
        return
    constants: list[str] = []
    decoder = json.JSONDecoder(parse_int=_integer, parse_constant=constants.append)
    at, budget, read_to = 0, 8 * len(body), 0
    beside = [] if words is None else words
    while (opening := _OPENING.search(body, at)) and budget > 0:
        start = opening.start()
        try:
            value, at = decoder.raw_decode(body, start)
            beside.append(body[read_to:start])
            read_to = at
            # A value with NaN is no JSON, and its parts aren't the answer either.
            if not constants:
                yield _shallow(value)
        except (ValueError, RecursionError) as error:
            budget -= _work_of(error, body, start)
            at = max(at, start + 1)
        constants.clear()
    beside.append(body[read_to:])


def _work_of(error: Exception, body: str, start: int) -> int:
    """Characters that a failed decode may have read: the total is bounded, to stay linear."""
    if isinstance(error, json.JSONDecodeError) and not error.msg.startswith("Unterminated"):
        # The error's own text counts the lines before it, which costs a little by itself.
        return error.pos - start + 1 + error.pos // 256
    return len(body) - start


_LONE_SURROGATE = re.compile(
    r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
    r"|[\ud800-\udfff]"
)
"""A surrogate without its other half; escaped backslashes and whole pairs are passed over."""


def _replaced(match: re.Match[str]) -> str:
    text = match.group()
    return text if text == "\\\\" or len(text) == 12 else "\\ufffd"


def _integer(digits: str) -> int:
    """A whole number; one that JSON libraries can't hold is the nearest that they can."""
    if len(digits) < 19:
        return int(digits)
    value = int(digits[:40]) * (1 if len(digits) <= 40 else 10**40)
    return min(max(value, -(2**63)), 2**64 - 1)


def _refused(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON")


def after_thinking(text: str) -> str:
    """What follows the last closed thinking block."""
    ends = [match.end() for match in _THINKING_END.finditer(text)]
    return text[ends[-1] :] if ends else text


_OPENING = re.compile(r"[{\[]")


def _shallow(value: object) -> object:
    """Returns the value, or raises ValueError when it is nested too deeply to be walked."""
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise ValueError(str(error)) from None
    return value


def lenient(text: str) -> tuple[object, bool]:
    """A text as JSON, with numbers and characters that libraries refuse.

    Args:
        text: JSON or not.

    Returns:
        The value, None where it is nested too deeply to be walked; whether the text is JSON.
    """
    try:
        value: object = orjson.loads(text)
    except ValueError:
        body = _LONE_SURROGATE.sub(_replaced, text.strip())
        try:
            decoder = json.JSONDecoder(parse_int=_integer, parse_constant=_refused)
            value, end = decoder.raw_decode(body)
        except RecursionError:
            return None, True
        except ValueError:
            return None, False
        if end != len(body):
            return None, False
    try:
        return _shallow(value), True
    except ValueError:
        return None, True
