"""Equality of two JSON values: exact, or up to spelling."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from ...records.loose_json import as_list, as_object

Schema = Mapping[str, Any]
SameText = Callable[[str, str], bool]
"""Returns True if two free texts mean the same."""


def is_same(one: Any, other: Any) -> bool:
    """Returns True if two JSON values are equal: 35 and 35.0 are, true and 1 are not."""
    return _is_equal(one, other, {}, _is_same_leaf)


def is_equivalent(one: Any, other: Any, schema: Schema, same_text: SameText | None = None) -> bool:
    """Returns True if two JSON values are equal up to spelling.

    Equal are a number and its text (35 and ``"35.00"``, not ``"035"``), a Boolean and its text,
    dates of one moment (ISO 8601, or with the English name of the month), texts that differ only in
    case and blanks, and words that are the same member of a declared enum up to case, blanks,
    hyphens and underscores. Two texts are compared as numbers only if the schema declares a number:
    ``"1.10"`` may be a version.

    Args:
        one: JSON.
        other: JSON.
        schema: JSON Schema of both, as far as known.
        same_text: Called with two texts that differ by these rules, unless a number, a Boolean or
            an enum is declared or both are dates; None to count them as different.
    """

    def is_equal_leaf(one: Any, other: Any, schema: Schema) -> bool:
        if _is_equivalent_leaf(one, other, schema):
            return True
        if same_text is None or not (isinstance(one, str) and isinstance(other, str)):
            return False
        return _is_free(one, other, schema) and same_text(one, other)

    return _is_equal(one, other, schema, is_equal_leaf)


def is_equal_in_meaning(one: Any, other: Any, schema: Schema, same_text: SameText) -> bool:
    """Returns True if two JSON values are equal except for free texts that mean the same.

    ``same_text`` is not called if the values differ in anything else.
    """
    pairs: list[tuple[str, str]] = []

    def collect(one: str, other: str) -> bool:
        pairs.append((one, other))
        return True

    return is_equivalent(one, other, schema, collect) and all(
        same_text(*pair) for pair in dict.fromkeys(pairs)
    )


def _is_equal(
    one: Any, other: Any, schema: Schema, is_equal_leaf: Callable[[Any, Any, Schema], bool]
) -> bool:
    members, others = as_object(one), as_object(other)
    if members is not None and others is not None:
        parts = as_object(schema.get("properties")) or {}
        return members.keys() == others.keys() and all(
            _is_equal(value, others[name], as_object(parts.get(name)) or {}, is_equal_leaf)
            for name, value in members.items()
        )
    listed, other_listed = as_list(one), as_list(other)
    if listed is not None and other_listed is not None:
        items = as_object(schema.get("items")) or {}
        return len(listed) == len(other_listed) and all(
            _is_equal(*pair, items, is_equal_leaf)
            for pair in zip(listed, other_listed, strict=True)
        )
    return is_equal_leaf(one, other, schema)


def _is_same_leaf(one: Any, other: Any, _: Schema) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _is_equivalent_leaf(one: Any, other: Any, schema: Schema) -> bool:
    if _is_same_leaf(one, other, schema):
        return True
    kind = schema.get("type")
    is_number = any(each in ("number", "integer") for each in as_list(kind) or [kind])
    if is_number or not (isinstance(one, str) and isinstance(other, str)):
        for read in (_number, _boolean):
            value = read(one)
            if value is not None and value == read(other):
                return True
    if not (isinstance(one, str) and isinstance(other, str)):
        return False
    enum = [each for each in as_list(schema.get("enum")) or () if isinstance(each, str)]
    member, other_member = _member(one, enum), _member(other, enum)
    if member and other_member:
        return member == other_member
    moment = _moment(one)
    if moment is not None and moment == _moment(other):
        return True
    return _folded(one) == _folded(other)


def _is_free(one: str, other: str, schema: Schema) -> bool:
    """True unless another type or an enum is declared, or both texts are dates."""
    kind = schema.get("type")
    is_text = any(each in ("string", None) for each in as_list(kind) or [kind])
    return is_text and "enum" not in schema and None in (_moment(one), _moment(other))


_NUMBER = re.compile(r"\s*[+-]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?\s*")


def _number(value: Any) -> Decimal | None:
    if isinstance(value, str):
        return Decimal(value.strip()) if _NUMBER.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return Decimal(value if isinstance(value, int) else repr(value))


def _boolean(value: Any) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(_folded(value))
    return value if isinstance(value, bool) else None


_ORDINAL = re.compile(r"\b([0-9]{1,2})(?:st|nd|rd|th)\b")
_NAMED_MONTH = ("%d %B %Y", "%d %b %Y", "%B %d %Y", "%b %d %Y")
"""Forms of unambiguous dates, without commas: 5 March 2026, Mar 5 2026."""


def _moment(text: str) -> datetime | None:
    text = text.strip()
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    if not text[-4:].isdecimal():
        return None
    plain = " ".join(_ORDINAL.sub(r"\1", text.replace(",", " ")).split())
    for form in _NAMED_MONTH:
        try:
            return datetime.strptime(plain, form)  # noqa: DTZ007 - a date has no zone
        except ValueError:
            continue
    return None


def _member(text: str, enum: list[str]) -> str:
    """The member of an enum that a text means, if unambiguous; else empty."""
    if text in enum:
        return text
    alike = {each for each in enum if _word(each) == _word(text)}
    return alike.pop() if len(alike) == 1 else ""


def _word(text: str) -> str:
    return _folded(re.sub(r"[_-]", " ", text))


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
