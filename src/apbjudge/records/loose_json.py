"""JSON as models and people write it: amid prose, with odd numbers, with words for true."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, cast

import orjson

from ..errors import RowError


def as_object(value: object) -> dict[str, Any] | None:
    """A JSON object; None for any other value."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def as_list(value: object) -> list[Any] | None:
    """A JSON array; None for any other value."""
    return cast("list[Any]", value) if isinstance(value, list) else None


def objects_of(value: object) -> list[dict[str, Any]]:
    """The nonempty JSON objects of an array; none for any other value."""
    return [of for of in map(as_object, as_list(value) or ()) if of]


TRUTHS: Mapping[str, bool] = {
    **dict.fromkeys("true yes y 1 1.0".split(), True),
    **dict.fromkeys("false no n 0 0.0".split(), False),
}
"""Words and numbers for true and false, as texts in lower case."""


def truth_of(value: object) -> bool | None:
    """True or false, also as a word or number; a spreadsheet may write 1.0. None for all else."""
    if value is None or isinstance(value, bool):
        return value
    is_plain = isinstance(value, str | int | float)
    return TRUTHS.get(str(value).strip().lower()) if is_plain else None


_MOST_PYTHON = 2**18
_OF_PYTHON = orjson.OPT_NON_STR_KEYS


def python_value(value: Any) -> Any:
    """The JSON value of a text that is a Python dictionary, list or tuple; others as they are."""
    text = value if isinstance(value, str) else ""
    is_one = text[:1] in ("{", "[", "(") and text[-1] in "}])"
    if not is_one or len(text) > _MOST_PYTHON:
        return value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return orjson.loads(orjson.dumps(ast.literal_eval(text), option=_OF_PYTHON))
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            return value


THINKING_TAG = re.compile(r"<(/?)(?:seed:)?think(?:ing)?>|\[(/?)THINK\]", re.IGNORECASE)
"""The start of a model's thinking or, with a slash, its end."""


@dataclass(frozen=True, slots=True)
class Block:
    """A JSON object or array somewhere in a text.

    Attributes:
        value: The parsed value.
        start: Where it begins.
        end: Where it ends.
        fault: Reason why it can't be relied on: NaN or an infinity, or a key that occurs twice with
            different values; empty otherwise.
        is_mended: True if it became JSON only after its syntax was repaired.
    """

    value: object
    start: int
    end: int
    fault: str = ""
    is_mended: bool = False


def json_values(text: str, words: list[str] | None = None) -> Iterator[object]:
    """Yields the JSON values of a reply in order; the last usable one is the answer.

    Args:
        text: The reply.
        words: Receives the text before, between and after the values, once all are read; nothing if
            the reply is a single value.
    """
    try:
        yield _shallow(orjson.loads(text))
    except ValueError:
        body = after_thinking(decodable(text))
    else:
        return
    beside, read_to = [] if words is None else words, 0
    for block in blocks(body):
        beside.append(body[read_to : block.start])
        read_to = block.end
        if not block.fault:  # a value with NaN is not JSON, and its parts aren't the answer either
            yield block.value
    beside.append(body[read_to:])


def decodable(text: str) -> str:
    """The text with an escape for U+FFFD in place of each half of a surrogate pair."""
    return _LONE_SURROGATE.sub(_replaced, text)


_MOST_MENDED = 2**19
"""Limit of characters that are examined to repair syntax: far more than a verdict has."""


def blocks(body: str, *, mends: bool = False) -> Iterator[Block]:
    """Yields the JSON objects and arrays of a text, in order and none within another.

    Takes time in proportion to the text: one with thousands of brackets that open nothing is not
    read to its end.

    Args:
        body: The text, without lone surrogates.
        mends: True if syntax that can only mean one thing is repaired: single quotes, a trailing
            comma, raw line breaks, backslashes that escape nothing, comments, ``True``, ``False``
            and ``None``. Keys that occur twice with different values are then a fault.
    """
    faults: list[str] = []

    def refused(constant: str) -> None:
        faults.append(f"{constant} is no JSON")

    hook = partial(_once, faults) if mends else None
    settings: Any = {"parse_int": _integer, "parse_constant": refused}
    decoder = json.JSONDecoder(**settings, object_pairs_hook=hook)
    at, budget, mendable = 0, 8 * len(body), _MOST_MENDED * mends
    while (opening := _OPENING.search(body, at)) and budget > 0:
        start = opening.start()
        faults.clear()
        try:
            value, at = decoder.raw_decode(body, start)
            yield Block(_shallow(value), start, at, "; ".join(faults))
            continue
        except (ValueError, RecursionError) as error:
            budget -= _work_of(error, body, start)
            at = max(at, start + 1)
        if mendable <= 0:
            continue
        faults.clear()
        text, end = _mended(body, start, min(len(body), start + mendable))
        mendable -= end - start
        relaxed = json.JSONDecoder(**settings, object_pairs_hook=hook, strict=False)
        try:
            value, read = relaxed.raw_decode(text)
            if read == len(text):
                yield Block(_shallow(value), start, end, "; ".join(faults), is_mended=True)
                at = end
        except (ValueError, RecursionError):
            pass


def _once(faults: list[str], pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; a key that occurs twice with different values is a fault."""
    result = dict(pairs)
    twice = (key for key, value in pairs if result[key] is not value and result[key] != value)
    faults += [f"{key!r} stands twice, with different values" for key in islice(twice, 1)]
    return result


_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*+(?:"|\Z)'
    r"|(?<!\w)'(?:[^'\\]|\\.)*+(?:'|\Z)"
    r"|(?<![:\w])//[^\n]*|/\*.*?(?:\*/|\Z)|(?<!\S)#[^\n]*"
    r"|\b(?:True|False|None)\b|[^\"'/#,{}\[\]TFN]+|.",
    re.DOTALL,
)
"""A string in either quotes, a comment, a constant of Python, a run of other text, a character."""
_ESCAPE = re.compile(r'(\\["\\/bfnrtu])|\\')
_KEY_IN_COMMENT = re.compile(r"[\"']\s*:")
"""A key in a comment, which may be content: such a text is not repaired."""
_CONSTANTS = {"True": "true", "False": "false", "None": "null"}


def _mended(body: str, start: int, last: int) -> tuple[str, int]:
    """The text from a bracket on, repaired into JSON if possible, and the position of its end.

    The text is empty if the bracket is not closed before ``last``.
    """
    depth, pieces, comma = 0, list[str](), -1
    for match in _TOKEN.finditer(body, start, last):
        piece = match.group()
        if piece in "{[":
            depth += 1
        elif piece in "}]":
            depth -= 1
            if comma >= 0:
                pieces[comma] = ""
        pieces.append(_as_json(piece))
        if not pieces[-1].isspace():
            comma = len(pieces) - 1 if piece == "," else -1
        if depth == 0:
            return "".join(pieces), match.end()
    return "", last


def _as_json(piece: str) -> str:
    if len(piece) > 1 and piece[0] in "\"'":
        text = piece[1:-1]
        if piece[0] == "'":
            text = text.replace("\\'", "'").replace('"', '\\"')
        return f'"{_ESCAPE.sub(_as_escape, text)}"'
    if (piece[:2] in ("//", "/*") or piece[0] == "#") and not _KEY_IN_COMMENT.search(piece):
        return " "
    return _CONSTANTS.get(piece, piece)


def _as_escape(match: re.Match[str]) -> str:
    return match[1] or r"\\"  # a backslash that escapes nothing is literal


def _work_of(error: Exception, body: str, start: int) -> int:
    """Characters that a failed decode may have read: the total is bounded, to stay linear."""
    if isinstance(error, json.JSONDecodeError) and not error.msg.startswith("Unterminated"):
        # The error's own text counts the lines before it, which costs a little by itself.
        return error.pos - start + 1 + error.pos // 32
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
    """An integer; one that JSON libraries can't hold becomes the nearest that they can."""
    if len(digits) < 19:
        return int(digits)
    value = int(digits[:40]) * (1 if len(digits) <= 40 else 10**40)
    return min(max(value, -(2**63)), 2**64 - 1)


def _refused(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON")


def after_thinking(text: str) -> str:
    """The text after the last closed thinking block."""
    ends = [match.end() for match in THINKING_TAG.finditer(text) if match[1] or match[2]]
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
    """Parses JSON, including numbers and characters that libraries refuse.

    Args:
        text: JSON or not.

    Returns:
        The value, None if it is nested too deeply to be walked; and True if the text is JSON.
    """
    try:
        value: object = orjson.loads(text)
    except ValueError:
        body = decodable(text.strip())
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


# Storing ------------------------------------------------------------------------------------------

MAX_DEPTH = 200
_DEPTH_OF_WRITER = 254  # of orjson


def is_shallow(value: object) -> bool:
    """True if a JSON value is nested at most ``MAX_DEPTH`` deep, the limit for writing."""
    for _ in range(_DEPTH_OF_WRITER - MAX_DEPTH):
        value = [value]
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return False
    return True


def check_depth(field: str, value: object) -> None:
    """Raises RowError if a value that a run stores as JSON is nested too deeply to be written."""
    if not is_shallow(value):
        raise RowError(field, f"JSON nested at most {MAX_DEPTH} deep", "deeper JSON")


def json_text(value: object, field: str) -> str:
    """A text as it is, any other value as JSON.

    Raises:
        RowError: With the field's name, if a value is nested too deeply (about 250 levels).
    """
    try:
        return value if isinstance(value, str) else orjson.dumps(value).decode()
    except orjson.JSONEncodeError as error:
        raise RowError(field, "values that can be written as JSON", str(error)) from None


def rest_of(entry: Mapping[str, Any], known: AbstractSet[str]) -> dict[str, Any]:
    """The fields that are not among the known ones, without empty ones."""
    if entry.keys() <= known:
        return {}
    nothing: tuple[Any, ...] = (None, [], {}, "")
    return {name: entry[name] for name in entry if name not in known and entry[name] not in nothing}
