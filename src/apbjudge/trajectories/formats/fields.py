"""Fields of a log's entry, each with its required type; else RowError names it.

``where`` is put before the field's name; of several names, the first with a value counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, cast

from ...errors import RowError
from ...records.loose_json import as_object, truth_of

_NUMBERS = (int, float)


def first_of(entry: Mapping[str, Any], *names: str) -> tuple[str, Any]:
    """The first nonempty field with its name; else None with the first name."""
    for name in names:
        if (value := entry.get(name)) is not None:
            return name, value
    return names[0], None


def _stated(
    holder: Mapping[str, Any], names: Sequence[str], kind: type, expected: str, where: str
) -> Any:
    name, value = first_of(holder, *names)
    if value is None or isinstance(value, kind):
        return value
    raise RowError(f"{where}{name}", expected, value)


def text_field(holder: Mapping[str, Any], *names: str, where: str = "") -> str:
    """A text under any of the names; empty without."""
    return _stated(holder, names, str, "text", where) or ""


def object_in(holder: Mapping[str, Any], name: str, where: str = "") -> dict[str, Any]:
    """A JSON object; empty without."""
    return _stated(holder, (name,), dict, "an object", where) or {}


def list_in(
    holder: Mapping[str, Any], name: str, where: str = "", *, is_needed: bool = False
) -> list[Any]:
    """A list; empty without, unless one is required."""
    listed = _stated(holder, (name,), list, "a list", where)
    if listed is None and is_needed:
        raise RowError(f"{where}{name}", "a list", None)
    return listed or []


def objects_in(
    holder: Mapping[str, Any], name: str, where: str = "", *, is_needed: bool = False
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a list, numbered from 0."""
    for number, value in enumerate(list_in(holder, name, where, is_needed=is_needed)):
        if (of := as_object(value)) is None:
            raise RowError(f"{where}{name}.{number}", "an object", value)
        yield number, of


def id_field(entry: Mapping[str, Any], *names: str) -> str:
    """An id under any of the names, an integer as text; empty without.

    Raises:
        RowError: If it is something else, or blank.
    """
    name, value = first_of(entry, *names)
    if value is None:
        return ""
    if (isinstance(value, str) and value.strip()) or type(value) is int:
        return str(value)
    raise RowError(name, "text that is not blank, or a whole number", value)


def whole_field(entry: Mapping[str, Any], name: str) -> int | None:
    """An integer, also as text or with a decimal point; None without.

    Raises:
        RowError: If it is something else.
    """
    value = entry.get(name)
    if value is None or type(value) is int:
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, str) and value.isdecimal() and len(value) < 16:
        return int(value)
    raise RowError(name, "a whole number", value)


def number_field(entry: Mapping[str, Any], name: str) -> float | None:
    """A finite number; None without.

    Raises:
        RowError: If it is something else.
    """
    value = entry.get(name)
    if value is None:
        return None
    if type(value) in _NUMBERS and isfinite(value):
        return float(value)
    raise RowError(name, "a number", value)


def success_of(value: object) -> bool | None:
    """A success, also as a word or number; None if none is stated.

    Raises:
        RowError: If it is something else.
    """
    number = number_of(value)
    if value is not None and number not in (0, 1):
        raise RowError("success", "true or false (or yes, no, 1, 0, pass, fail)", value)
    return None if number is None else number == 1


_WORD = 64
_LETTERS: Mapping[str, float] = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_WORDS: Mapping[str, float] = {
    **dict.fromkeys("pass passed correct success".split(), 1.0),
    **dict.fromkeys("fail failed incorrect failure".split(), 0.0),
}


def number_of(score: object, *, letters: bool = False) -> float | None:
    """A score as a number, words as read by the tools that write them; None for other words.

    Inspect (``value_to_float``): C is 1, P 0.5, I and N 0, yes and true 1, no and false 0, and
    digits are their number. Langfuse: a score of the type BOOLEAN is 1 or 0, in words True or
    False. LangSmith: the score of a feedback is a number or a truth value. MLflow: yes and no; its
    unknown is neither. OpenTelemetry: labels of ``gen_ai.evaluation.score`` are free words; on a
    scale of two they are pass and fail, or correct and incorrect.

    Args:
        score: A number, truth value or word.
        letters: True if Inspect wrote it: elsewhere a C may be a mark.
    """
    if (truth := truth_of(score)) is not None:
        return float(truth)
    word = score.strip() if isinstance(score, str) else ""
    known = _WORDS.get(word.lower(), _LETTERS.get(word) if letters else None)
    try:
        number = float(cast("Any", score)) if known is None else known
    except (TypeError, ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


def scores_in(values: Mapping[str, Any]) -> dict[str, bool | float | str]:
    """The truth values, finite numbers and words of an object and of objects in it, by names.

    Names in inner objects are joined with dots. Lists and longer texts are not scores.
    """
    scores: dict[str, bool | float | str] = {}
    for name, value in values.items():
        if type(value) in _NUMBERS and (number := number_of(value)) is not None:
            scores[name] = number
        elif isinstance(value, bool) or (isinstance(value, str) and len(value) <= _WORD):
            scores[name] = value
        elif (inner := as_object(value)) is not None:
            scores |= scores_in({f"{name}.{key}": of for key, of in inner.items()})
    return scores


HUMAN = " (human)"
"""Suffix of the names of a person's scores, if a log distinguishes them from judges' scores."""


def numbers_in(values: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """The finite numbers of an object and of objects in it, by names joined with dots."""
    scores = scores_in(values).items()
    return {prefix + name: float(value) for name, value in scores if type(value) in _NUMBERS}
