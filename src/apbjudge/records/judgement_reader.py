"""Reads judgements into a table: every row is checked, none is held."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import is_, itemgetter
from pathlib import Path
from typing import Any, cast

import numpy as np
from pydantic import ValidationError

from ..config import STATIC
from ..errors import InputError, RowError, visible
from ..jsonl import read_lines
from .columns import (
    BITS,
    Codes,
    ColumnBuilder,
    Measures,
    Vector,
    encoded,
    flag_bits,
    keys_of,
    numbers,
    texts_of,
    tristate,
)
from .judgement_table import GROUPS, PROFILE, JudgementTable, Problems
from .judgements import ERROR_CODES, UNSEEN, Usage, unseen_of
from .labels import CATEGORY, GRADE, place_of_category, place_of_grade
from .scales import ScaleCheck

MAX_COST = 1e15
"""No plan costs more: beyond it sums of squares are no numbers any more."""

NOT_STATED = "not stated"


def read_table(path: Path, problems: Problems) -> JudgementTable:
    """Reads a file of judgements.

    Args:
        path: The file.
        problems: Gets a line for each damaged row, which is left out, and one for all rows of
            another judge than the first one's, which are left out too: what another judge says
            would stand under this one's name.

    Raises:
        InputError: If the file can't be read, holds no judgement, or its grades or categories are
            on another scale.
    """
    reader = _Reader(path)
    n_before = len(problems)
    for line in read_lines(path):
        if complaint := reader.add(line.values, line.number, line.offset):
            problems.append(f"{path}:{line.number}: {complaint}")
    table = reader.table()
    reader.scales.close()
    if not len(table):
        wanted = "expected judgements, one a line, as apbjudge grade writes them"
        raise InputError(f"{path}: {wanted}{first_complaint(problems[n_before:])}")
    problems.extend(reader.other_judges())
    return table


def table_of(rows: Iterable[Mapping[str, Any]]) -> JudgementTable:
    """The table of rows in memory, whoever judged them.

    Raises:
        InputError: If one is no judgement.
    """
    reader = _Reader(None)
    for number, row in enumerate(rows, 1):
        if complaint := reader.add(row, number, -1):
            raise InputError(f"judgement {number}: {complaint}")
    return reader.table()


def first_complaint(problems: Sequence[str]) -> str:
    """The first complaint, for the end of a message that a whole file is unusable."""
    return f"; first complaint: {visible(problems[0])}" if problems else ""


_NONE = type(None)
_REQUIRED: Mapping[str, tuple[tuple[type, ...], str]] = {
    "item_id": ((str, _NONE), "text"),
    "tested_model": ((str, _NONE), "text"),
    "judge": ((str,), "text"),
    "kind": ((str,), "verdict or unscored"),
    "is_correct": ((bool, _NONE), "true or false"),
    "grade": ((float, int, _NONE), "a number from 0 to 1, or null"),
    "category": ((int, _NONE), "1 to 5, or null"),
    "errors": ((dict, _NONE), "true or false per code, or null"),
}
_ADDED_LATER: Mapping[str, tuple[tuple[type, ...], str]] = {
    "matches_reference": ((bool, _NONE), "true, false or null"),
    "over_refusal": ((bool, _NONE), "true, false or null"),
    "groups": ((dict, _NONE), "values by name, or null"),
    "doubt": ((dict, _NONE), "numbers by name, or null"),
    "diagnosis": ((dict, _NONE), "measures and classes, or null"),
}
"""Fields that judgements of older versions don't have."""

LENIENT: Mapping[str, tuple[type, ...]] = {
    "case_id": (str, _NONE),
    "protocol": (str, _NONE),
    "rubric": (str, _NONE),
    "decided_by": (str, _NONE),
    "content_id": (str, _NONE),
    "response_id": (str, _NONE),
    "plan_cost": (float, int, _NONE),
    "excess_cost": (float, int, _NONE),
    "uses_distractor": (bool, _NONE),
    "images_shown": (int, _NONE),
    "images_of": (int, _NONE),
    "not_shown": (list, _NONE),
    "inconsistent": (bool, _NONE),
    "lenient_replies": (int, _NONE),
    "overrides": (list, _NONE),
    "findings": (list, _NONE),
    "reason": (str, _NONE),
    "usage": (dict, _NONE),
    "cost_usd": (float, int, _NONE),
    "latency_s": (float, int, _NONE),
}
"""Fields that a file of another program or version may lack; of other kinds they are missing."""

_SHAPE = {**_REQUIRED, **_ADDED_LATER}
_NAMES = (*_SHAPE, *LENIENT)
_COUNTS = tuple(Usage.model_fields)
_NO_USAGE = (-1,) * len(_COUNTS)
_COUNTS_OF = cast("Callable[[Any], tuple[int, ...]]", itemgetter(*_COUNTS))
_MOST_TOKENS = 2**31


def row_complaint(values: Mapping[str, Any]) -> str:
    """Why a row is no judgement; empty when it is one."""
    for name, (kinds, expected) in _SHAPE.items():
        if name in _REQUIRED and name not in values:
            return str(RowError(name, "a judgement, as apbjudge grade writes it", "no such field"))
        if not isinstance(values.get(name), kinds):
            return str(RowError(name, expected, values[name]))
    for name, is_right in _RANGES.items():
        if not is_right(values):
            return str(RowError(name, _SHAPE[name][1], values[name]))
    return ""


_RANGES: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "kind": lambda row: row["kind"] in {"verdict", "unscored"},
    "is_correct": lambda row: row["kind"] != "verdict" or row["is_correct"] is not None,
    "grade": lambda row: row["grade"] is None or _is_within(row["grade"], 0, 1),
    "category": lambda row: row["category"] is None or _is_within(row["category"], 1, 5),
    "errors": lambda row: all(isinstance(flag, bool) for flag in _flags(row)),
    "doubt": lambda row: not row.get("doubt") or _is_entropy(row["doubt"].get("entropy")),
    "diagnosis": lambda row: not row.get("diagnosis") or _is_diagnosis(row["diagnosis"]),
}


def _own_errors(errors: Mapping[str, bool] | None) -> tuple[tuple[str, bool], ...]:
    """The flags of codes other than E1 to E6, by code."""
    if not errors or errors.keys() <= _SHIPPED_CODES:
        return ()
    return tuple((c, f) for c, f in errors.items() if c not in _SHIPPED_CODES)


_SHIPPED_CODES = frozenset(ERROR_CODES)


_OF_FILES = ("images_shown", "images_of", "not_shown")


def _unseen(*stated: object) -> int:
    """A bit for each of ``UNSEEN``."""
    return sum(1 << UNSEEN.index(name) for name in unseen_of(*stated))


def _flags(row: Mapping[str, Any]) -> Iterable[object]:
    return () if row["errors"] is None else row["errors"].values()


def _is_within(value: object, low: float, high: float) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return low <= value <= high


def _is_entropy(entropy: object) -> bool:
    """Whether it is in bits by field, as far as it is stated; rounding may pass 1 by a hair."""
    if not isinstance(entropy, dict):
        return entropy is None
    stated = cast("dict[str, object]", entropy).get("is_correct")
    return stated is None or _is_within(stated, 0, 1.001)


def _is_diagnosis(diagnosis: Mapping[str, Any]) -> bool:
    """Whether its measures are numbers and its classes texts, as far as they are stated."""
    measures: Any = diagnosis.get("measures") or {}
    classes: Any = diagnosis.get("classes") or {}
    if not isinstance(measures, dict) or not isinstance(classes, dict):
        return False
    numbers: list[Any] = [*cast("dict[str, Any]", measures).values()]
    texts: list[Any] = [*cast("dict[str, Any]", classes).values()]
    if not {*map(type, numbers)} <= {float, int} or not {*map(type, texts)} <= {str}:
        return False
    sizes: list[float] = [abs(number) for number in numbers]
    return max(sizes, default=0) <= MAX_COST


class _Reader:
    """Takes in rows of judgements.

    Rows whose fields are of the same kinds are alike: one of them is checked in full, the others
    for the ranges of their numbers.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.scales = ScaleCheck(path or Path("rows"))
        self._judge = self._first_judge = self._example = ""
        self._n_others = 0
        self._last_errors: dict[str, tuple[int, str]] = {}
        self._right: set[tuple[Any, ...]] = set()
        self._profiles, self._reasons, self._own_errors = Codes(), Codes(), Codes()
        self._measures = Measures()
        self._rows = ColumnBuilder(("position", *_NAMES), self._columns_of)

    def add(self, row: Mapping[str, Any] | RowError, line: int, offset: int) -> str:
        """Takes a row in, or says why it is no judgement."""
        if isinstance(row, RowError):
            return str(row)
        try:
            values = (*_OF_REQUIRED(row), *map(row.get, _OPTIONAL))
            shape = (*map(type, values), *_STATES(values))
            is_right = shape in self._right and not _is_odd(values)
        except (KeyError, TypeError):  # a field is missing, or a list where a state should stand
            values, shape, is_right = (), (), False
        if not is_right:
            if complaint := row_complaint(row):
                self._count_scales(row, line)
                return complaint
            mended = tuple(map(usable, _NAMES, values))
            if all(map(is_, mended, values)):
                self._right.add(shape)
            values = mended
        if values[_JUDGE] != self._judge and self._is_of_another(row, line):
            return ""
        self._rows.add((offset, *values))
        reason, detail = values[_REASON], row.get("detail")
        if isinstance(reason, str) and isinstance(detail, str):
            at = row.get("line")  # of the input, since rows finish in any order
            last = (at if isinstance(at, int) else 0, detail)
            self._last_errors[reason] = max(last, self._last_errors.get(reason, last))
        return ""

    def _is_of_another(self, row: Mapping[str, Any], line: int) -> bool:
        """Whether a row is not the judge's; one that never became an item always is."""
        judge = row["judge"]
        self._first_judge = self._first_judge or judge
        if self.path is None or judge == self._judge or row["item_id"] is None:
            return False
        if not self._judge:
            self._judge = judge
            return False
        self._count_scales(row, line)
        self._n_others += 1
        self._example = self._example or f"{visible(judge)} in line {line}"
        return True

    def other_judges(self) -> Iterator[str]:
        """A line about the rows of other judges, if there were any."""
        if self._n_others:
            yield (
                f"{self.path}: judge: expected rows of one judge, got {self._n_others} of others "
                f"than {visible(self._judge)}, such as {self._example}: they are left out; give "
                "each judge a file of its own"
            )

    def _count_scales(self, row: Mapping[str, Any], line: int) -> None:
        """Counts the numbers of a row that does not count by where they lie on their scale."""
        if self.path is None or not isinstance(row.get("judge"), str):
            return
        judge, correct = row["judge"], row.get("is_correct")
        grade, category = (
            float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
            for value in (row.get("grade"), row.get("category"))
        )
        if place := place_of_grade(grade, correct if isinstance(correct, bool) else None):
            self.scales.add(judge, line, place, RowError("grade", GRADE, row["grade"]))
        if place := place_of_category(category):
            self.scales.add(judge, line, place, RowError("category", CATEGORY, row["category"]))

    def _columns_of(self, of: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        items, cases = encoded(of["item_id"]), encoded(of["case_id"])
        scored = np.array([kind == "verdict" for kind in of["kind"]], dtype=bool)
        correct, grade = tristate(of["is_correct"]), numbers(of["grade"])
        by_code = zip(of["decided_by"], of["judge"], strict=True)
        # earlier versions wrote a grade for the static judge, which can't know one
        grade[[(decided or judge) == STATIC for decided, judge in by_code]] = np.nan
        category = np.array([value or 0 for value in of["category"]], dtype=np.int8)
        if self.path is not None:
            sure = ((grade > 0) & (grade < 1)) | ((correct >= 0) & (grade == correct))
            n_sure, n_graded = int(sure.sum()), int((~np.isnan(grade)).sum())
            self.scales.count(self._judge, "grade", n_sure, n_graded - n_sure)
            self.scales.count(self._judge, "category", 0, int((category > 0).sum()))
        flags, known = flag_bits(of["errors"])
        profiles = [
            (None if item is None else protocol, *rest, *map((groups or _NO_GROUPS).get, GROUPS))
            for item, protocol, *rest, groups in zip(
                items,
                *(of[name] for name in (*PROFILE[: -len(GROUPS)], "groups")),
                strict=True,
            )
        ]
        return {
            "correct": np.where(scored, correct, -1).astype(np.int8),
            "grade": np.where(scored, grade, np.nan),
            "flags": np.where(scored, flags, 0).astype(BITS),
            "known": np.where(scored, known, 0).astype(BITS),
            "category": np.where(scored, category, 0).astype(np.int8),
            "profile": self._profiles.of(profiles),
            "position": np.array(of["position"], dtype=np.int64),
            "item_id": texts_of(items),
            "case_id": texts_of(cases),
            "item": (item := keys_of(items)),
            "case_keys": _case_keys(items, cases, of["content_id"], item),
            "content": keys_of(encoded(of["content_id"])),
            "response": keys_of(encoded(of["response_id"])),
            "scored": scored,
            "cost": _bounded(of["plan_cost"]),
            "excess": _bounded(of["excess_cost"]),
            "distractor": tristate(of["uses_distractor"]),
            "matches": tristate(of["matches_reference"]),
            "over_refusal": tristate(of["over_refusal"]),
            "unseen": np.array([*map(_unseen, *(of[name] for name in _OF_FILES))], dtype=np.uint8),
            "inconsistent": np.array(list(map(bool, of["inconsistent"])), dtype=bool),
            "lenient_replies": np.array([n or 0 for n in of["lenient_replies"]], dtype=np.int64),
            "overridden": np.array(list(map(bool, of["overrides"])), dtype=bool),
            "off_form": np.array(list(map(_is_off_form, of["findings"])), dtype=bool),
            "entropy": _of_doubts(of["doubt"], "entropy"),
            "p_correct": _of_doubts(of["doubt"], "shares"),
            "cost_usd": _bounded(of["cost_usd"]),
            "latency_s": numbers(of["latency_s"]),
            "reason": self._reasons.of([reason or NOT_STATED for reason in of["reason"]]),
            "own_errors": self._own_errors.of(list(map(_own_errors, of["errors"]))),
            "usage": _usage_columns(of["usage"]),
            "diagnosis": self._measures.add(of["diagnosis"]),
        }

    def table(self) -> JudgementTable:
        """The table of all rows that were taken in."""
        columns = self._rows.columns()
        own: list[dict[str, bool]] = [dict(flags) for flags in self._own_errors.names]
        own_codes = tuple(dict.fromkeys(code for flags in own for code in flags))
        codes = (*ERROR_CODES, *own_codes)
        if own_codes and not columns["known"].any():  # the rubric has none of E1 to E6
            codes = own_codes
        of_row = columns.pop("own_errors")
        names, measures = self._measures.columns(columns.pop("diagnosis"))
        for name, bits in zip(("flags", "known"), flag_bits(own, codes), strict=True):
            columns[name] |= np.where(columns["scored"], bits[of_row], 0).astype(BITS)
        return JudgementTable(
            judge=self._judge or self._first_judge,
            path=self.path,
            profiles=self._profiles.names,
            reasons=self._reasons.names,
            last_errors={reason: text for reason, (_, text) in self._last_errors.items()},
            error_codes=codes,
            measures=measures,
            measure_names=names,
            **columns,
        )


_OF_REQUIRED, _OPTIONAL = itemgetter(*_REQUIRED), _NAMES[len(_REQUIRED) :]
_NO_GROUPS: Mapping[str, Any] = {}
_JUDGE, _REASON = _NAMES.index("judge"), _NAMES.index("reason")
_STATES = itemgetter(*map(_NAMES.index, ("kind", "is_correct", "category")))
_RANGED = itemgetter(*map(_NAMES.index, ("grade", "errors", "groups", "doubt", "diagnosis")))


def _is_odd(values: tuple[Any, ...]) -> bool:
    """Whether a field of the right kind holds what it should not, or may not."""
    grade, errors, groups, doubt, diagnosis = _RANGED(values)
    return (
        (grade is not None and not 0 <= grade <= 1)
        or (errors and {*map(type, errors.values())} != {bool})
        or (groups and not {*map(type, groups.values())} <= {str, int, _NONE})
        or (doubt and not _is_plain(doubt))
        or (diagnosis and not _is_diagnosis(diagnosis))
    )


def usable(name: str, value: Any) -> Any:
    """The value of a field; None where it is of a kind of which nothing could be made."""
    if name == "groups" and value and not {*map(type, value.values())} <= {str, int, _NONE}:
        return {k: v if type(v) in (str, int, _NONE) else str(v) for k, v in value.items()}
    return None if name in LENIENT and type(value) not in LENIENT[name] else value


def _is_plain(doubt: Mapping[str, Any]) -> bool:
    """Whether the entropy of ``is_correct`` is a number of bits."""
    bits = _bits_of(doubt, "entropy")
    return bits is not None and 0 <= bits <= 1.001


def _bits_of(doubt: Mapping[str, Any] | None, name: str) -> float | None:
    """What a doubt states of ``is_correct``; see ``_of_doubts``."""
    of: Any = doubt.get(name) if doubt else None
    stated = cast("dict[str, Any]", of) if isinstance(of, dict) else {}
    value = stated.get("is_correct")
    return value if type(value) in (float, int) else None


def _is_off_form(findings: list[Any] | None) -> bool:
    """Whether one of the findings is about the form of the reply."""
    return bool(findings) and any(
        isinstance(one, dict) and cast("dict[str, Any]", one).get("rule") == "format"
        for one in findings
    )


def _usage_columns(usages: Sequence[dict[str, Any] | None]) -> Vector:
    """Shape (n, 7): the counts of each usage; -1 where none is stated in numbers."""
    try:
        alike = [_NO_USAGE if usage is None else _COUNTS_OF(usage) for usage in usages]
        counts = np.array(alike).reshape(-1, len(_COUNTS))
        is_plain = all(usage is None or len(usage) == len(_COUNTS) for usage in usages)
    except (KeyError, TypeError, ValueError):
        counts, is_plain = np.zeros(0), False
    if not is_plain or counts.dtype.kind != "i" or np.any(abs(counts) >= _MOST_TOKENS):
        counts = np.array([_counts(usage) for usage in usages]).reshape(-1, len(_COUNTS))
    return np.where(counts.min(axis=1, keepdims=True, initial=0) < 0, -1, counts).astype(np.int32)


def _counts(usage: dict[str, Any] | None) -> tuple[int, ...]:
    try:
        counts: tuple[int, ...] = tuple(Usage.model_validate(usage).__dict__.values())
    except ValidationError:
        return _NO_USAGE
    return counts if max(map(abs, counts)) < _MOST_TOKENS else _NO_USAGE


def _of_doubts(doubts: Sequence[dict[str, Any] | None], name: str) -> Vector:
    """What doubts state of ``is_correct`` in their ``entropy`` or ``shares``; NaN for nothing."""
    try:
        values = [doubt[name]["is_correct"] if doubt else None for doubt in doubts]
        is_plain = {*map(type, values)} <= {float, _NONE}
    except (KeyError, TypeError):
        values, is_plain = [], False
    return numbers(values if is_plain else [_bits_of(doubt, name) for doubt in doubts])


def _bounded(values: Sequence[float | None]) -> Vector:
    """Prices; NaN for what is none."""
    found = numbers(values)
    return np.where(np.abs(found) <= MAX_COST, found, np.nan)


def _case_keys(
    items: Sequence[bytes | None],
    cases: Sequence[bytes | None],
    contents: Sequence[str | None],
    item_keys: Vector,
) -> Vector:
    """Shape (n, 2): keys of each row's case; a row that names none is the case of its item.

    Where a row names no case but itself, its content tells of which case it is.
    """
    at = [i for i, case in enumerate(cases) if case is not None and case != items[i]]
    names = item_keys.copy()
    names[at] = keys_of(cases[i] for i in at)
    own = names.copy()
    by_content = sorted({i for i, of in enumerate(contents) if of is not None} - {*at})
    own[by_content] = keys_of(encoded(f"content\0{contents[i]}" for i in by_content))
    return np.stack([names, own], axis=1)
