"""Judgements and labels in files of other tools: the roles and scales of their columns.

A file is of any kind that ``own_rows`` reads. Nothing is coerced: a value off its scale is refused
with its line, and a column is read only if its name is unambiguous or the user names it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal, cast

from ..errors import InputError, OptionError, RowError, shorten
from .files import unpacked
from .loose_json import TRUTHS
from .own_rows import TABLES, kind_of, rows_in, stated_rows
from .tables import column_names

MAX_LEVELS = 101
"""Limit of an ordinal scale's levels, and of classes; integers over a wider range are numeric."""

Kind = Literal["yes/no", "ordinal", "numeric", "classes"]
Role = Literal["verdict", "score", "class"]
Row = Mapping[str, Any]
Rows = list[tuple[int, Row | RowError]]

_TRUTHS: Mapping[str, bool] = {
    **TRUTHS,
    **dict.fromkeys("pass passed correct".split(), True),
    **dict.fromkeys("fail failed incorrect".split(), False),
}
_YES_NO = "yes or no (or true/false, pass/fail, correct/incorrect, 1/0)"
_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)"
_RANGE = re.compile(rf"\s*({_NUMBER})\s*\.\.\s*({_NUMBER})\s*")
_NUMERIC = re.compile(rf"{_NUMBER}(?:[eE][+-]?\d{{1,3}})?", re.ASCII)
SCALES = "yes/no, a range (1..5, 0..1), levels in order (bad<ok<good) or classes (a,b,c)"


# Scales -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ForeignScale:
    """The values that a judge and humans could choose from.

    Attributes:
        kind: ``ordinal`` has levels in order, ``classes`` names without an order.
        text: The scale as it was stated.
        names: Levels or classes, each with its other spellings; empty for numbers and yes/no.
        low: Least value of a range; the index 0 of named levels.
        high: Greatest value.
    """

    kind: Kind
    text: str
    names: tuple[tuple[str, ...], ...] = ()
    low: float = 0.0
    high: float = 1.0

    @classmethod
    def parse(cls, text: str) -> ForeignScale:
        """Reads a scale.

        ``1..5``: whole numbers, each a level; ``0..1`` and ranges with a decimal point: any number
        in between. ``bad<ok<good``: levels in order. ``refund,exchange``: classes. A name may have
        other spellings: ``tie|draw``.

        Raises:
            OptionError: If it is none of these.
        """
        if text.strip().lower() == "yes/no":
            return cls("yes/no", "yes/no")
        if match := _RANGE.fullmatch(text):
            low, high = map(float, match.groups())
            if not low < high:
                raise OptionError(f"--scale: expected a range from low to high, got {text!r}")
            is_integer = "." not in "".join(match.groups()) and 1 < high - low < MAX_LEVELS
            return cls("ordinal" if is_integer else "numeric", text.strip(), (), low, high)
        for mark, kind in (("<", "ordinal"), (",", "classes")):
            if mark in text:
                names = tuple(
                    tuple(part.strip() for part in name.split("|")) for name in text.split(mark)
                )
                flat = [part.casefold() for name in names for part in name]
                if not all(flat) or len({*flat}) < len(flat) or len(names) > MAX_LEVELS:
                    expected = f"2 to {MAX_LEVELS} different names"
                    raise OptionError(f"--scale: expected {expected}, got {text!r}")
                return cls(cast("Kind", kind), text, names, 0.0, float(len(names) - 1))
        raise OptionError(f"--scale: expected {SCALES}, got {text!r}")

    @property
    def role(self) -> Role:
        """Role of the column that has this scale."""
        if self.kind == "yes/no":
            return "verdict"
        return "class" if self.kind == "classes" else "score"

    @property
    def levels(self) -> tuple[float, ...]:
        """Scores as fractions of the range: levels in order; hundredths for a numeric scale."""
        steps = int(self.high - self.low) if self.kind == "ordinal" else MAX_LEVELS - 1
        return tuple(step / steps for step in range(steps + 1))

    @property
    def level_names(self) -> tuple[str, ...]:
        """Names of the levels or classes."""
        if self.names:
            return tuple(name[0] for name in self.names)
        return tuple(f"{self.low + level * (self.high - self.low):g}" for level in self.levels)

    @cached_property
    def _index(self) -> Mapping[str, int]:
        return {part.casefold(): i for i, name in enumerate(self.names) for part in name}

    def read(self, value: object, column: str) -> float:
        """Reads a value: index of the class from 0, or the score as a fraction of the range.

        Raises:
            RowError: If it is off the scale.
        """
        if self.kind == "yes/no":
            return float(read_truth(value, column))
        if self.names:
            index = self._index.get(_word(value).casefold())
            if index is None:
                raise RowError(column, f"one of {', '.join(self.level_names)}", value)
            return float(index) if self.kind == "classes" else index / self.high
        number = _number(value)
        is_integer = self.kind == "ordinal"
        what = "a whole number" if is_integer else "a number"
        if number is None or not self.low <= number <= self.high or (is_integer and number % 1):
            raise RowError(column, f"{what} from {self.low:g} to {self.high:g}", value)
        return (number - self.low) / (self.high - self.low)


YES_NO = ForeignScale("yes/no", "yes/no")
UNIT = ForeignScale.parse("0..1")


def read_truth(value: object, column: str) -> bool:
    """Reads a yes or no.

    Raises:
        RowError: If it is neither.
    """
    truth = _TRUTHS.get(_word(value).lower())
    if truth is None:
        raise RowError(column, _YES_NO, value)
    return truth


def _word(value: object) -> str:
    """A text, number or truth value as text; 1.0, as spreadsheets write it, is 1."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip() if isinstance(value, str | bool | int | float) else ""


def is_score(value: object) -> bool:
    """True if a value is a number, a truth value or a word for one."""
    return _number(value) is not None or _word(value).lower() in _TRUTHS


def _number(value: object) -> float | None:
    if isinstance(value, str):
        return float(value) if _NUMERIC.fullmatch(value.strip()) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


# Files --------------------------------------------------------------------------------------------


def read_rows(path: Path) -> tuple[list[str], Rows]:
    """Columns and rows of a file; rows lack their empty values.

    Objects within a row are columns named with dots (``scores.tone``).

    Args:
        path: The file, as ``own_rows`` takes it.

    Returns:
        Names of the columns; the rows with their line, or their number from 1.

    Raises:
        InputError: If the file can't be read, or has no rows.
    """
    rows: Rows = [
        (number, row if isinstance(row, RowError) else flat(row))
        for number, row in stated_rows(path)
    ]
    named = (name for _, row in rows if not isinstance(row, RowError) for name in row)
    columns = column_names(unpacked(path)) if kind_of(path) == "cells" else [*dict.fromkeys(named)]
    if not columns or not rows:
        raise InputError(f"{path}: expected rows with columns, got none")
    return columns, rows


def flat(row: Row, prefix: str = "") -> dict[str, Any]:
    """A row whose objects are columns named with dots; null and empty values are left out."""
    columns: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            columns |= flat(cast("Row", value), f"{prefix}{name}.")
        elif value is not None and value != "":
            columns[prefix + name] = value
    return columns


# Columns ------------------------------------------------------------------------------------------

_NAMES: Mapping[str, str] = {
    "item": "item_id id item example_id sample_id question_id task_id instance_id prompt_id idx "
    "index uid ticket ticket_id",
    "tested_model": "tested_model model model_id model_name system assistant generator candidate",
    "verdict": "is_correct passed pass correct ok verdict success label judgement judgment",
    "score": "grade score rating stars points mark label verdict",
    "class": "category class classification label verdict",
    "rater": "rater annotator annotator_id labeller labeler reviewer worker worker_id user who",
    "judge": "judge judge_model judge_name grader evaluator",
    "case": "case_id",
    "first": "model_a system_a model_1 system_1 first_model first_system",
    "second": "model_b system_b model_2 system_2 second_model second_system",
    "order": "order presented shown swapped",
    "preference": "preference winner preferred verdict label judgement judgment choice",
}
"""Names of columns that imply a role, this project's own first."""


@dataclass(frozen=True)
class ForeignRows:
    """A file with the role of each column that is read.

    Attributes:
        path: The file.
        columns: Its columns.
        roles: Column by role.
    """

    path: Path
    columns: Sequence[str]
    roles: Mapping[str, str]

    def describe(self, what: str, scale: ForeignScale) -> str:
        """The columns read and their roles, in a sentence."""

        def described(role: str, column: str) -> str:
            scales = {scale.role: scale.text, "preference": scale.text, "verdict": "yes/no"}
            on = f" ({scales[role]})" if role in scales else ""
            return f"{column} as {role.replace('_', ' ')}{on}"

        listed = ", ".join(described(role, column) for role, column in self.roles.items())
        return f"Read in {what}: {listed}."


def column_of(
    path: Path, columns: Sequence[str], role: str, stated: str | None, option: str
) -> str | None:
    """The column that has a role: the stated one, or the only one whose name fits.

    Args:
        path: The file, for messages.
        columns: Its columns.
        role: A role of ``_NAMES``.
        stated: The column that the user named.
        option: The option that names it, for messages.

    Returns:
        The column; None if no name fits.

    Raises:
        InputError: If the stated column is missing, or several names fit equally well.
    """
    by_name = {name.lower(): name for name in columns}
    if stated is not None:
        if stated.lower() not in by_name:
            expected = f"one of the columns {', '.join(columns)}"
            raise InputError(f"{path}: {option}: expected {expected}, got {stated!r}")
        return by_name[stated.lower()]
    known = _NAMES[role].split()
    fits = [by_name[name] for name in known if name in by_name]
    if len(fits) < 2 or fits[0].lower() == known[0]:
        return fits[0] if fits else None
    several = " or ".join(fits)
    raise InputError(
        f"{path}: {role.replace('_', ' ')}: it may be {several}; name it with {option}; "
        f"the columns are {', '.join(columns)}"
    )


def no_column(path: Path, columns: Sequence[str], role: str, option: str) -> InputError:
    """The complaint that no column has a role."""
    return InputError(
        f"{path}: expected a column for the {role.replace('_', ' ')}, named with {option}; "
        f"the columns are {', '.join(columns)}"
    )


def text_of(row: Row, column: str) -> str:
    """A name or id of a row; numbers are written as they are.

    Raises:
        RowError: If there is none.
    """
    word = _word(row.get(column))
    if not word:
        raise RowError(column, "a text or number", row.get(column))
    return word


def own_columns(columns: Iterable[str], rows: Sequence[Row]) -> dict[str, list[str | None]]:
    """Every column as texts, to group by; lists and the like are left out."""
    return {name: [_word(row.get(name)) or None for row in rows] for name in columns}


def usable(rows: Rows, path: Path, problems: list[str]) -> Iterator[tuple[int, Row]]:
    """The rows that could be read; each other one becomes a line in ``problems``."""
    for number, row in rows:
        if isinstance(row, RowError):
            problems.append(f"{path}:{number}: {row}")
        else:
            yield number, row


def has_foreign_rows(path: Path) -> bool:
    """True if a file is a table, or has rows without the fields of our judgements and labels."""
    if path.is_dir():
        return False
    if path.suffix.lower() in {".json", ".eval"} or (kind := kind_of(path)) in TABLES:
        return True
    rows = [row for _, row in islice(rows_in(path, kind), _LOOKED_AT)]
    read = [row for row in rows if not isinstance(row, RowError)]
    ours = {"kind", "fingerprint", "rater", "errors"}
    return bool(read) and not any(ours & row.keys() for row in read)


_LOOKED_AT = 100


def shown_values(values: Iterable[object]) -> str:
    """Some of the distinct values, for a message."""
    return ", ".join(shorten(value) for value in list(dict.fromkeys(map(_word, values)))[:6])
