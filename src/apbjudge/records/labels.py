"""Human labels, one per item and rater, from JSONL or CSV."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any, cast

import orjson
from pydantic import ConfigDict, Field

from ..errors import InputError, RowError
from .base import Record
from .judgements import ERROR_CODES, ErrorCode
from .loose_json import truth_of
from .own_rows import stated_rows
from .scales import Place, ScaleCheck
from .text_pairs import is_pair, label_row

Flags = dict[ErrorCode, bool]


class HumanLabel(Record):
    """One rater's label of one item; fields without an answer are None.

    Attributes:
        item_id: The item.
        tested_model: The tested model of the response; None if item ids are already unique.
        rater: The rater; ``human`` for all lines that name none.
        is_correct: True if the prediction passes.
        grade: 0 to 1, meant to be one of the rubric's levels.
        errors: Flag per code; a missing code was not labelled.
        category: 1 to 5 for tool-broken.
        note: The rater's remark; empty without one, and in labels from tables, which may have
            several columns of that name.
        unsure: True if the rater is unsure of the label, which still counts as one.
        faulty_steps: Numbers of the wrong steps, from 1, sorted; empty if none was marked, which
            does not imply that none is wrong.
        shown_at: Time at which the rater first saw the item, ISO 8601 in UTC; None if unknown.
        decided_at: Time of the label's last change; None if unknown.
        seconds: Time that the rater had the item open until then; None if unknown.
        decided_from: For an adjudicated label, the raters' labels that it was decided from.
    """

    model_config = ConfigDict(extra="ignore")  # labels carry notes of all sorts

    item_id: str = Field(pattern=r"\S")
    tested_model: str | None = None
    rater: str = "human"
    is_correct: bool | None = None
    grade: float | None = Field(default=None, ge=0, le=1)
    errors: dict[ErrorCode, bool] | None = None
    category: int | None = Field(default=None, ge=1, le=5)
    note: str = ""
    unsure: bool = False
    faulty_steps: tuple[int, ...] = ()
    shown_at: str | None = None
    decided_at: str | None = None
    seconds: float | None = None
    decided_from: tuple[dict[str, Any], ...] = ()

    @property
    def contradiction(self) -> str | None:
        """The contradiction within the label, in words; None without one.

        A plan is correct exactly when no error is flagged and the grade is 1.0 (arXiv:2606.04874).
        A label that contradicts itself still counts as it is.
        """
        flags = ", ".join(code for code, is_set in (self.errors or {}).items() if is_set)
        if self.is_correct and flags:
            return f"{flags} flagged, yet is_correct is true"
        if self.is_correct and self.grade is not None and self.grade < 1:
            return f"grade {self.grade}, yet is_correct is true"
        if self.is_correct is False and self.grade == 1 and not flags:
            return "grade 1.0 and no error flagged, yet is_correct is false"
        return None


def read_labels(
    path: Path,
    *,
    bad: Callable[[str], None] | None = None,
    scales: ScaleCheck | None = None,
    codes: Sequence[str] = ERROR_CODES,
) -> Iterator[HumanLabel]:
    """Yields the labels of a file: JSON lines, a table, or another kind that ``own_rows`` reads.

    Null and an empty cell mean that nothing was stated; unknown fields are ignored. ``errors`` maps
    codes to true or false, or lists those that are set: then all others are false. A flag may also
    have a field of its own, such as E1.

    Args:
        path: The file.
        bad: Called with the complaint about an unusable row (``file:line: field …``), which is then
            left out; None raises it.
        scales: Receives every number of a field that has a scale.
        codes: The known error codes.

    Raises:
        InputError: If the file as a whole is unusable, or a row is and ``bad`` is None.
    """
    for _, label in read_label_rows(path, bad=bad, scales=scales, codes=codes):
        yield label


def read_label_rows(
    path: Path,
    *,
    bad: Callable[[str], None] | None,
    scales: ScaleCheck | None,
    codes: Sequence[str],
) -> Iterator[tuple[Mapping[str, Any], HumanLabel]]:
    """Yields the labels of a file, each with its whole row; see ``read_labels``."""
    for number, values in label_rows(path, codes):
        try:
            if isinstance(values, RowError):
                raise values
            if scales is not None:
                check_scales(scales, values, number, codes)
            label = label_of(values, codes)
        except RowError as error:
            text = f"{path}:{number}: {error}"
            if bad is None:
                raise InputError(text) from None
            bad(text)
        else:
            yield values, label


_NOT_IN_TABLES = ("note", "decided_from")
_COLUMNS = tuple(name for name in HumanLabel.model_fields if name not in _NOT_IN_TABLES)


def label_rows(
    path: Path, codes: Sequence[str] = ERROR_CODES, *, any_column: bool = False
) -> Iterator[tuple[int, Mapping[str, Any] | RowError]]:
    """Yields the rows of a file of labels with their lines.

    Args:
        path: The file.
        codes: The known error codes.
        any_column: True if all columns of a table are read, not just those named like our fields.

    Raises:
        InputError: If the file can't be read, or holds a judge's judgements, which would pass for
            human labels.
    """
    columns, needed = ((), ()) if any_column else ((*_COLUMNS, *codes), ("item_id",))
    for number, values in stated_rows(path, columns, needed):
        if not isinstance(values, RowError) and values.keys() >= _OF_JUDGEMENTS:
            got = "got a judge's judgement"
            raise InputError(f"{path}:{number}: expected labels of humans, {got}")
        if isinstance(values, RowError) or not is_pair(values):
            yield number, values
        else:
            yield number, label_row(values)


_OF_JUDGEMENTS = {"judge", "kind", "fingerprint"}


def label_of(values: Mapping[str, Any], codes: Sequence[str] = ERROR_CODES) -> HumanLabel:
    """The label that a row holds; ``codes`` are the known error codes.

    Raises:
        RowError: If a field is unusable.
    """
    stated: dict[str, Any] = {
        name: read(values.get(name), name)
        for name, read in _READERS.items()
        if name == "item_id" or values.get(name) is not None
    }
    return HumanLabel(**stated, errors=_flags(tuple(codes)).of(values))


# One field at a time -----------------------------------------------------------------------------


TRUTH = "true or false (or yes, no, 1, 0)"
GRADE = "a number from 0 to 1"
CATEGORY = "a whole number from 1 to 5"


def read_name(value: object, field: str) -> str:
    """A name or an id; raises RowError if it is neither."""
    if not isinstance(value, str) or not value.strip():
        raise RowError(field, "a non-empty string", value)
    return value


def _truth(value: object, field: str) -> bool:
    truth = truth_of(value)
    if truth is None:
        raise RowError(field, TRUTH, value)
    return truth


_NUMBER = re.compile(r"[+-]?(\d+(?:[.,]\d*)?|[.,]\d+)(e[+-]?\d{1,3})?", re.ASCII | re.IGNORECASE)


def _number(value: object) -> float | None:
    """A number, also as text with a decimal point or comma; None for anything else."""
    if isinstance(value, str):
        text = value.strip()
        return float(text.replace(",", ".")) if _NUMBER.fullmatch(text) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def _grade(value: object, field: str) -> float:
    number = _number(value)
    if number is None or not 0 <= number <= 1:
        raise RowError(field, GRADE, value)
    return number


def _category(value: object, field: str) -> int:
    number = _number(value)
    if number not in (1, 2, 3, 4, 5):
        raise RowError(field, CATEGORY, value)
    return int(number)


def read_note(value: object, field: str) -> str:
    """A note; empty if the value is not a text."""
    return value if isinstance(value, str) else ""


def _steps(value: object, field: str) -> tuple[int, ...]:
    listed = re.findall(r"[^\s,;]+", value) if isinstance(value, str) else value
    if not isinstance(listed, list):
        listed = [listed]
    numbers = [_number(each) for each in cast("list[object]", listed)]
    if not all(number is not None and number >= 1 and number == int(number) for number in numbers):
        raise RowError(field, "numbers of steps, from 1", value)
    return tuple(sorted({int(number) for number in numbers if number is not None}))


# These fields only describe how a label came about: an unusable value does not cost the label.


def _time(value: object, field: str) -> str | None:
    try:
        return value if isinstance(value, str) and datetime.fromisoformat(value) else None
    except ValueError:
        return None


def _seconds(value: object, field: str) -> float | None:
    number = _number(value)
    return number if number is not None and number >= 0 and isfinite(number) else None


def _sources(value: object, field: str) -> tuple[dict[str, Any], ...]:
    listed = cast("list[object]", value) if isinstance(value, list) else []
    return tuple(cast("dict[str, Any]", each) for each in listed if isinstance(each, dict))


# Scales ------------------------------------------------------------------------------------------


def check_scales(
    scales: ScaleCheck, values: Mapping[str, Any], line: int, codes: Sequence[str], n: int = 1
) -> None:
    """Counts the numbers of a row, or of n equal ones, by their places on their fields' scales."""
    rater = values.get("rater")
    who = rater if isinstance(rater, str) else "human"
    errors = values.get("errors")
    flags = cast("dict[str, object]", errors) if isinstance(errors, dict) else {}
    truths: dict[str, object] = {
        **{name: values[name] for name in ("is_correct", *codes) if name in values},
        **{f"errors.{code}": flag for code, flag in flags.items()},
    }
    for field, value in truths.items():
        if place := _place_of_truth(value):
            scales.add(who, line, place, (field, TRUTH, value), n)
    correct = truth_of(values.get("is_correct"))
    if place := place_of_grade(_number(values.get("grade")), correct):
        scales.add(who, line, place, ("grade", GRADE, values["grade"]), n)
    if place := place_of_category(_number(values.get("category"))):
        scales.add(who, line, place, ("category", CATEGORY, values["category"]), n)


def _place_of_truth(value: object) -> Place | None:
    """Words are sure; the numbers are not, since 1 or 0 is the worst mark of many a scale."""
    if value is None or isinstance(value, bool):
        return None if value is None else "sure"
    number = _number(value)
    if number is None:
        return None if truth_of(value) is None else "sure"
    return "within" if number in (0, 1) else "off"


def place_of_grade(grade: float | None, correct: bool | None) -> Place | None:  # noqa: FBT001
    """The place of a grade relative to the scale; None without a grade.

    A grade between 0 and 1 is surely of our scale, and so is a 1 for a correct row or a 0 for an
    incorrect one. A 0 or 1 without such agreement may come from another scale.

    Args:
        grade: The grade.
        correct: ``is_correct`` of the same row.
    """
    if grade is None:
        return None
    if 0 < grade < 1 or (correct is not None and grade == correct):
        return "sure"
    return "within" if grade in (0, 1) else "off"


def place_of_category(category: float | None) -> Place | None:
    """The place of a category; None without one. Categories counted from 0 look like ours."""
    if category is None:
        return None
    return "within" if category in (1, 2, 3, 4, 5) else "off"


_READERS: Mapping[str, Callable[[object, str], Any]] = {
    "item_id": read_name,
    "tested_model": read_name,
    "rater": read_name,
    "is_correct": _truth,
    "grade": _grade,
    "category": _category,
    "note": read_note,
    "unsure": _truth,
    "faulty_steps": _steps,
    "shown_at": _time,
    "decided_at": _time,
    "seconds": _seconds,
    "decided_from": _sources,
}


# Error flags -------------------------------------------------------------------------------------

_NO_ERROR = ("none", "-")
_SEPARATORS = re.compile(r"[\s,;|]+")


@cache
def _flags(codes: tuple[str, ...]) -> _Flags:
    return _Flags(codes)


class _Flags:
    """Reads the flags of some codes from rows."""

    def __init__(self, codes: Sequence[str]) -> None:
        self._codes = codes
        self._by_name = {code.lower(): code for code in codes}
        self._expected = "codes from E1 to E6"
        if tuple(codes) != ERROR_CODES:
            self._expected = f"some of the codes {', '.join(codes)}"

    def of(self, values: Mapping[str, Any]) -> Flags | None:
        """The flags in ``errors`` and in fields of their own."""
        flags = self._stated(values.get("errors"))
        for code in self._codes:
            if (value := values.get(code)) is None:
                continue
            flag = _truth(value, code)
            if flags.setdefault(code, flag) != flag:
                raise RowError(code, f"{str(flags[code]).lower()}, as errors says", value)
        return {code: flags[code] for code in self._codes if code in flags} or None

    def _stated(self, value: object) -> Flags:
        if value is None:
            return {}
        if isinstance(value, str):
            return self._from_text(value.strip())
        if isinstance(value, dict):
            return self._from_object(cast("dict[str, object]", value))
        if isinstance(value, list):
            return self._from_list(cast("list[object]", value))
        raise RowError("errors", self._expected, value)

    def _from_text(self, text: str) -> Flags:
        if text.startswith(("{", "[")):
            try:
                return self._stated(orjson.loads(text))
            except orjson.JSONDecodeError as error:
                expected = f"{self._expected}, or JSON ({error})"
                raise RowError("errors", expected, text) from None
        if not text:
            return {}
        listed = [] if text.lower() in _NO_ERROR else _SEPARATORS.split(text.strip(",;|"))
        return self._from_list(list(listed))

    def _from_object(self, value: Mapping[str, object]) -> Flags:
        stated: dict[ErrorCode, object] = {
            self._code(name): flag for name, flag in value.items() if flag is not None
        }
        return {code: _truth(flag, f"errors.{code}") for code, flag in stated.items()}

    def _from_list(self, value: list[object]) -> Flags:
        """A list names every flag that is set; an empty one states that none is."""
        is_set = {self._code(entry) for entry in value}
        return {code: code in is_set for code in self._codes}

    def _code(self, name: object) -> ErrorCode:
        code = self._by_name.get(name.strip().lower()) if isinstance(name, str) else None
        if code is None:
            raise RowError("errors", self._expected, name)
        return code
