"""Kinds of values: placeholders, references to results, stopgaps."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from ...records.loose_json import as_list, as_object

_PREVIOUS = re.compile(r"^\W*PREVIOUS_(?:STEP_)?(?:RESULT|OUTPUT)\w*\W*(?:\.[\w.\[\]]*)?$")
_TOOL_REF = re.compile(
    r"^(?:(?:\$\{?|\{\{\s*\$?)(?P<path>[^\s{}<>]+)\}?(?P<rest>[.\[][^\s{}<>]*)?\s*(?:\}\}|\})?"
    r"|<\s*(?P<marked>[^\s{}<>]+)\s*>)$"
)
_NAME = re.compile(r"\A[A-Za-z_][\w-]*")
_STEP_REF = re.compile(
    r"^(?:(?:\$[{.]?|\{\{?\s*\$?|<{1,2}\s*|\[\s*|@|%)"
    r"(?:(?:the\s+)?[\w-]+\s+(?:of|from|in)\s+(?:the\s+)?)?steps?[\s_.\[-]{0,2}|steps\[)"
    r"(?P<n>\d{1,3})(?!\d)[\w\s.\[\]'\"-]*(?:\}\}?|>{1,2}|%)?$",
    re.IGNORECASE,
)
_NUMBER_REF = re.compile(
    r"^(?:#E|(?:\$\{?|\{\{\s*\$?|<\s*)(?:(?:result|output|call|node|task)s?[\s_.\[-]{0,2})?"
    r"|(?:results?|outputs?|calls?|tool_chain)\[|step_?(?=\d+[.\[]))"
    r"(?P<n>\d{1,2})(?!\d)\]?(?:[.\[][A-Za-z_'\"][\w.\[\]'\"-]*)?\s*(?:\}\}|\}|>)?$",
    re.IGNORECASE,
)
_STEP_WORD = re.compile(r"\b[Ss]tep\s+(\d{1,3})\b")
_STEP_RESULT = re.compile(
    r"(?:(?:use|take)\s+)?(?:the\s+)?(?:[\w-]+\s+(?:from|in|of)\s+(?:the\s+)?)?"
    r"(?:results?|outputs?|response)\s+(?:of|from)\s+step\s+(?P<n>\d{1,3})\W*"
    r"|(?:the\s+)?step\s+(?P<m>\d{1,3})(?:'s)?\s+(?:results?|outputs?|response)\W*",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    r"^(?:[^\S\n]|[*_#(-])*(?:step[^\S\n]+)?(\d{1,3})\*{0,2}[.):]\*{0,2}\s(.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_PLACEHOLDER = re.compile(
    r"^\W*(?:[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\W*$|^<.*>$|^\{.*\}$|^\[.*\]$|^\$|previous|result|output"
    r"|\bsteps?\b|step[_-]?\d|\bfrom\b|placeholder|^#\w+$|^[A-Za-z_]\w*(?:\[\d+\])*(?:\.\w+|\[\d+\])+$",
    re.IGNORECASE | re.DOTALL,
)
_STOPGAP = re.compile(
    r"^\W*(?:tbd|todo|unknown|n/?a|none|null|placeholder|some(?:thing|where)?|any|example|xxx+|\.\.\.|…)?\W*$",
    re.IGNORECASE,
)
LONGEST_MARK = 200
"""Longer values are text, not marks; patterns that could be slow never see them."""


class Leaf(NamedTuple):
    """A string inside an argument and the path to it."""

    path: str
    text: str


def strings(value: Any, path: str) -> Iterator[Leaf]:
    """Every string in a JSON value (nesting is bounded when the reply is read)."""
    if isinstance(value, str):
        yield Leaf(path, value)
    for key, child in (as_object(value) or {}).items():
        yield from strings(child, f"{path}.{key}")
    for i, child in enumerate(as_list(value) or ()):
        yield from strings(child, f"{path}[{i}]")


def is_previous_result(text: str) -> bool:
    """True if a value is the placeholder for the result of the step before."""
    return len(text) <= LONGEST_MARK and _PREVIOUS.match(text) is not None


def referenced_tool(text: str, names: Collection[str] | None = None) -> str | None:
    """The name in a value that is only a reference, such as ``$Search.items[0]``.

    Args:
        text: The value.
        names: Names that may be meant, with any characters; None for anything that looks like a
            name.
    """
    match = _TOOL_REF.match(text) if len(text) <= LONGEST_MARK else None
    if match is None:
        return None
    path = match["marked"] or f"{match['path']}{match['rest'] or ''}"
    if names is None:
        names = _NAME.findall(path)
    begun = (name for name in names if path.startswith((f"{name}.", f"{name}[")))
    whole = path if path in names and not match["marked"] else ""  # <h1> is markup
    return whole or max(begun, key=len, default=None)


def referenced_step(text: str) -> int | None:
    """The number in a value that is only a reference, such as ``${step_3.id}``."""
    match = _STEP_REF.match(text) if len(text) <= LONGEST_MARK else None
    return int(match["n"]) if match else None


def referenced_number(text: str) -> int | None:
    """The number in a value that may be a reference to a step or an amount: ``#E2``, ``$2``."""
    match = _NUMBER_REF.match(text) if len(text) <= LONGEST_MARK else None
    return int(match["n"]) if match else None


def later_step(text: str, position: int) -> int | None:
    """The first step named in words that is not earlier than ``position`` (counted from 1)."""
    if "step" not in text and "Step" not in text:
        return None
    named = (int(number) for number in _STEP_WORD.findall(text))
    return next((step for step in named if step >= position), None)


def result_of_step(text: str) -> int | None:
    """The number in words that only name the result of a step: ``output of step 3``."""
    match = _STEP_RESULT.fullmatch(text.strip()) if len(text) <= LONGEST_MARK else None
    return int(match["n"] or match["m"]) if match else None


def numbered_lines(text: str) -> list[tuple[int, str]]:
    """The numbered lines, such as ``2. Reserve``: their numbers, and their texts without them."""
    return [(int(number), rest) for number, rest in _NUMBERED.findall(text)]


def is_placeholder(value: object) -> bool:
    """True if a value as a whole could be a placeholder for a result still to come.

    Texts could, and objects that only have words for references, such as ``{"$ref": "step1",
    "path": "id"}``. Lists never could: a list stays one, whatever its entries become.
    """
    if isinstance(value, str):
        return _PLACEHOLDER.search(value[:LONGEST_MARK]) is not None
    names = {name.lower().lstrip("$") for name in as_object(value) or ()}
    return names <= _REFERENCE_WORDS and not names.isdisjoint(_REFERENCE_SIGNS)


_REFERENCE_SIGNS = frozenset(
    "ref reference step step_id step_index from_step from_tool result_of output_of placeholder "
    "previous_result previous_output previous_step_result previous_step_output var variable from "
    "call_id tool_call_id".split()
)
_REFERENCE_WORDS = _REFERENCE_SIGNS | frozenset(
    "source tool path jsonpath field key attribute property index type result output "
    "name description".split()
)


def is_stopgap(text: str) -> bool:
    """True if a value is empty or meaningless."""
    return len(text) <= LONGEST_MARK and _STOPGAP.match(text) is not None
