"""Reads judgements into a table: every row is checked, none is held."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, compress
from math import isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import numpy as np
from pydantic import ConfigDict, TypeAdapter, ValidationError

from ..errors import InputError, RowError, visible
from ..jsonl import read_lines
from .base import Record, complaint
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
from .judgements import COLUMNS, ERROR_CODES, FACTS, NO_JUDGEMENT, UNSEEN, Count, Usage, unseen_of
from .labels import CATEGORY, GRADE, place_of_category, place_of_grade
from .scales import ScaleCheck

MAX_COST = 1e15
"""Limit of a plan's cost, so that sums of squares stay finite."""

NOT_STATED = "not stated"


def read_table(path: Path, problems: Problems) -> JudgementTable:
    """Reads a file of judgements.

    Args:
        path: The file.
        problems: Receives a line for each damaged row, and one for all rows of a judge other than
            the first row's; both are left out, since the other judge's verdicts would appear under
            this one's name.

    Raises:
        InputError: If the file can't be read, holds no judgement, or its grades or categories are
            on another scale.
    """
    reader = _Reader(path)
    for line in read_lines(path):
        reader.add(line.values, line.number, line.offset)
    table = reader.table()
    reader.scales.close()
    complaints = [f"{path}:{line}: {error}" for line, error in reader.complaints]
    problems.extend(complaints)
    if not len(table):
        wanted = "expected judgements, one a line, as apbjudge grade writes them"
        raise InputError(f"{path}: {wanted}{first_complaint(complaints)}")
    problems.extend(reader.other_judges())
    return table


def table_of(rows: Iterable[Mapping[str, Any]], *, has_names: bool = True) -> JudgementTable:
    """The table of rows in memory, of any judges.

    Args:
        rows: The rows.
        has_names: True if ids of items and cases stay readable, and rows can be compared by content
            and response; if not, ids are empty texts, and keys of contents and responses are 0.

    Raises:
        InputError: If one is not a judgement.
    """
    reader = _Reader(None, has_names=has_names)
    for number, row in enumerate(rows, 1):
        reader.add(row, number, -1)
    table = reader.table()
    for number, error in reader.complaints:
        raise InputError(f"judgement {number}: {error}")
    return table


def first_complaint(problems: Sequence[str]) -> str:
    """The first complaint, to end a message that a whole file is unusable."""
    return f"; first complaint: {visible(problems[0])}" if problems else ""


_ABSENT = object()
_DEFAULTS = tuple(_ABSENT if column.is_required else None for column in COLUMNS.values())
_OF_JSON: Mapping[str, Any] = {
    "errors": dict[str, bool] | None,
    "reason": str,
    "usage": dict[str, Count],
    "not_shown": list[str],
    "frame_times": dict[str, list[float]] | None,
    **dict.fromkeys(("findings", "overrides"), list[dict[str, Any]]),
}
"""Types of columns in a file that differ, or may differ, from those of ``COLUMNS``."""


_Test = Callable[[Iterable[Any]], bool]


_SCALARS = {str, int, float, bool, NoneType}


def _quick_test(type_: Any) -> _Test:
    """A test that values pass only if all are of a type; if not, pydantic states the fault.

    It makes no copies, which take longer than the rest of the reading. Values that it does not
    know, such as integers in place of floats, do not pass.
    """
    origin, parts = get_origin(type_), get_args(type_)
    types = {*parts} if origin in (Union, UnionType) else {type_}
    if types <= _SCALARS:
        test = _test_of_scalars(types)
    elif len(rest := types - {NoneType}) == 1 < len(types):
        test = _test_of_stated(_quick_test(*rest))
    elif origin is dict:
        test = _test_of_dicts(*map(_quick_test, parts))
    elif origin is list:
        test = _test_of_lists(_quick_test(parts[0]))
    elif origin in (Annotated, Literal):
        test = _test_of_limits(type_, parts[0] if origin is Annotated else type(parts[0]))
    elif isinstance(type_, type) and issubclass(type_, Record):
        test = _test_of_models(type_)
    else:
        test = _test_of_others(is_any=type_ is Any)
    return test


def _test_of_scalars(types: set[type]) -> _Test:
    if float not in types:
        return lambda values: {*map(type, values)} <= types

    def are_finite(values: Iterable[Any]) -> bool:
        some = [*values]
        return {*map(type, some)} <= types and all(isfinite(each) for each in some if each)

    return are_finite


def _test_of_stated(are_right: _Test) -> _Test:
    return lambda values: are_right(value for value in values if value is not None)


def _test_of_others(*, is_any: bool) -> _Test:
    return lambda values: is_any or not any(True for _ in values)


def _test_of_dicts(are_keys: _Test, are_values: _Test) -> _Test:
    def are_dicts(values: Iterable[Any]) -> bool:
        dicts: list[dict[Any, Any]] = [*values]
        return (
            {*map(type, dicts)} <= {dict}
            and are_keys(chain.from_iterable(dicts))
            and are_values(chain.from_iterable(each.values() for each in dicts))
        )

    return are_dicts


def _test_of_lists(are_elements: _Test) -> _Test:
    def are_lists(values: Iterable[Any]) -> bool:
        lists: list[list[Any]] = [*values]
        return {*map(type, lists)} <= {list} and are_elements(chain.from_iterable(lists))

    return are_lists


def _test_of_limits(type_: Any, base: Any) -> _Test:
    of_base = _quick_test(base)
    elements: Any = list.__class_getitem__(type_)
    check: TypeAdapter[list[Any]] = TypeAdapter(elements, config=ConfigDict(strict=True))

    def are_within(values: Iterable[Any]) -> bool:
        some = [*values]
        if not of_base(some):
            return False
        try:
            check.validate_python([*{*some}])
        except ValidationError:
            return False
        return True

    return are_within


def _test_of_models(model: type[Record]) -> _Test:
    fields = model.model_fields
    required = {name for name, field in fields.items() if field.is_required()}
    tests = {name: _quick_test(field.annotation) for name, field in fields.items()}

    def are_models(values: Iterable[Any]) -> bool:
        dicts: list[dict[str, Any]] = [*values]
        return (
            {*map(type, dicts)} <= {dict}
            and all(required <= {*keys} <= fields.keys() for keys in {*map(tuple, dicts)})
            and all(test([d[n] for d in dicts if n in d]) for n, test in tests.items())
        )

    return are_models


def _type_of(name: str) -> Any:
    type_ = _OF_JSON.get(name, COLUMNS[name].type)
    return type_ if COLUMNS[name].is_required else type_ | None


@cache
def _check_of(name: str) -> TypeAdapter[tuple[Any, ...]]:
    """The check of a column of some rows at once, made when a value fails the quick test."""
    column: Any = tuple.__class_getitem__((_type_of(name), ...))
    return TypeAdapter(column, config=ConfigDict(strict=True))


_TESTS = {name: _quick_test(_type_of(name)) for name in COLUMNS}
_Columns = dict[str, Sequence[Any]]


_LONG = [at for at, name in enumerate(COLUMNS) if name in {"reasoning", "raw"}]
"""Texts that are not in the table: 256 rows of them push all else out of the processor's cache."""


class _Reader:
    """Reads rows of judgements and checks them in chunks, a column at a time."""

    def __init__(self, path: Path | None, *, has_names: bool = True) -> None:
        self.path = path
        self._has_names = has_names
        self.scales = ScaleCheck(path or Path("rows"))
        self._faults: list[tuple[int, RowError]] = []
        self._judge = self._first_judge = self._example = ""
        self._n_others = 0
        self._last_errors: dict[str, tuple[int, str]] = {}
        self._profiles, self._reasons, self._own_errors = Codes(), Codes(), Codes()
        self._measures = Measures()
        self._rows = ColumnBuilder(("position", "number", *COLUMNS), self._columns_of)

    def add(self, row: Mapping[str, Any] | RowError, number: int, offset: int) -> None:
        """Adds a line with its number and offset."""
        if isinstance(row, RowError):
            self._faults.append((number, row))
        else:
            values = [*map(row.get, COLUMNS, _DEFAULTS)]
            for at in _LONG:
                if type(values[at]) is str:
                    values[at] = ""
            self._rows.add((offset, number, *values))

    @property
    def complaints(self) -> list[tuple[int, RowError]]:
        """Numbers of the invalid lines with their errors, in order; complete after ``table``."""
        return sorted(self._faults, key=lambda fault: fault[0])

    def _checked(self, of: _Columns) -> _Columns:
        """The columns without rows that are not judgements or are another judge's."""
        faults = _faults_of_columns(of) or dict(_odd(of))
        if faults:
            for at in sorted(faults):
                self._faults.append((of["number"][at], faults[at]))
                self._count_scales(of, at)
            return self._checked(_without(of, faults))
        others = self._others(of)
        for at in others:
            self._count_scales(of, at)
        return _without(of, others) if others else of

    def _others(self, of: _Columns) -> list[int]:
        """The rows of other judges; a row that never became an item is not among them."""
        judges = of["judge"]
        self._first_judge = self._first_judge or next(iter(judges), "")
        if self.path is None:
            return []
        self._judge = self._judge or next(compress(judges, map(_is_stated, of["item_id"])), "")
        rows = enumerate(zip(judges, of["item_id"], strict=True))
        others = [at for at, (judge, item) in rows if judge != self._judge and item is not None]
        for at in others[: not self._example]:
            self._example = f"{visible(judges[at])} in line {of['number'][at]}"
        self._n_others += len(others)
        return others

    def other_judges(self) -> Iterator[str]:
        """A line about the rows of other judges, if there were any."""
        if self._n_others:
            yield (
                f"{self.path}: judge: expected rows of one judge, got {self._n_others} of others "
                f"than {visible(self._judge)}, such as {self._example}: they are left out; give "
                "each judge a file of its own"
            )

    def _count_scales(self, of: _Columns, at: int) -> None:
        """Counts the numbers of a row that is left out by their places on their scales."""
        judge, line, correct = of["judge"][at], of["number"][at], of["is_correct"][at]
        if self.path is None or not isinstance(judge, str):
            return
        grade, category = (
            float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
            for value in (of["grade"][at], of["category"][at])
        )
        if place := place_of_grade(grade, correct if isinstance(correct, bool) else None):
            self.scales.add(judge, line, place, ("grade", GRADE, of["grade"][at]))
        if place := place_of_category(category):
            self.scales.add(judge, line, place, ("category", CATEGORY, of["category"][at]))

    def _columns_of(self, of: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        of = self._checked(dict(of))
        items, cases = encoded(of["item_id"]), encoded(of["case_id"])
        compared = of if self._has_names else dict.fromkeys(of, [None] * len(items))
        scored = np.array([kind == "verdict" for kind in of["kind"]], dtype=bool)
        for at in np.flatnonzero(~scored).tolist():
            if (reason := of["reason"][at]) is not None and of["detail"][at] is not None:
                # by the line of the input, since rows finish in any order
                last = (of["line"][at] or 0, of["detail"][at])
                self._last_errors[reason] = max(last, self._last_errors.get(reason, last))
        correct, grade = tristate(of["is_correct"]), numbers(of["grade"])
        category = np.array([value or 0 for value in of["category"]], dtype=np.int8)
        if self.path is not None:
            sure = ((grade > 0) & (grade < 1)) | ((correct >= 0) & (grade == correct))
            n_sure, n_graded = int(sure.sum()), int((~np.isnan(grade)).sum())
            self.scales.count(self._judge, "grade", n_sure, n_graded - n_sure)
            self.scales.count(self._judge, "category", 0, int((category > 0).sum()))
        flags, known = flag_bits(of["errors"])
        profiles = [
            (None if item is None else protocol, *rest, *map((groups or _EMPTY).get, GROUPS))
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
            "item_id": texts_of(items if self._has_names else _nameless(items)),
            "case_id": texts_of(cases if self._has_names else _nameless(cases)),
            "item": (item := keys_of(items)),
            "case_keys": _case_keys(items, cases, of["content_id"], item),
            "content": keys_of(encoded(compared["content_id"])),
            "response": keys_of(encoded(compared["response_id"])),
            "scored": scored,
            "unseen": np.array([*map(_unseen, *(of[name] for name in _OF_FILES))], dtype=np.uint8),
            "overridden": np.array(list(map(bool, of["overrides"])), dtype=bool),
            "off_form": np.array(list(map(_is_off_form, of["findings"])), dtype=bool),
            "entropy": numbers([d and d["entropy"].get("is_correct") for d in of["uncertainty"]]),
            "p_correct": numbers([d and d["shares"].get("is_correct") for d in of["uncertainty"]]),
            "reason": self._reasons.of([reason or NOT_STATED for reason in of["reason"]]),
            "own_errors": self._own_errors.of(list(map(_own_errors, of["errors"]))),
            "usage": _counts(of["usage"]),
            "diagnosis": self._measures.add(of["diagnosis"]),
            **{fact.name: _vector(fact.type, of[fact.name]) for fact in FACTS},
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
        if own_codes:
            for name, bits in zip(("flags", "known"), flag_bits(own, codes), strict=True):
                columns[name] = columns[name] | np.where(columns["scored"], bits[of_row], BITS(0))
        return JudgementTable(
            judge=self._judge or self._first_judge,
            path=self.path,
            profiles=self._profiles.names,
            reasons=self._reasons.names,
            last_errors={reason: text for reason, (_, text) in self._last_errors.items()},
            error_codes=codes,
            facts={fact.name: columns.pop(fact.name) for fact in FACTS},
            measures=measures,
            measure_names=names,
            **columns,
        )


def _nameless(names: Iterable[bytes | None]) -> list[bytes | None]:
    return [None if name is None else b"" for name in names]


_EMPTY: Mapping[str, Any] = {}
_OF_FILES = ("images_shown", "images_of", "not_shown")
_SHIPPED_CODES = frozenset(ERROR_CODES)


def _faults_of_columns(of: _Columns) -> dict[int, RowError]:
    """The first fault of each row with an invalid value in a column."""
    faults: dict[int, RowError] = {}
    for name, are_right in _TESTS.items():
        if are_right(of[name]):
            continue
        try:
            _check_of(name).validate_python(of[name])
        except ValidationError as error:
            for each in error.errors(include_url=False):
                at, *inner = each["loc"]
                is_absent = each["input"] is _ABSENT
                fault = RowError(name, NO_JUDGEMENT, "no such field") if is_absent else None
                faults.setdefault(cast("int", at), fault or complaint(each, (name, *inner)))
    return faults


def _odd(of: _Columns) -> Iterator[tuple[int, RowError]]:
    """Rows whose values are valid one by one, but not in combination or in size."""
    for at, (kind, correct, uncertainty, diagnosis) in enumerate(
        zip(*(of[name] for name in "kind is_correct uncertainty diagnosis".split()), strict=True)
    ):
        bits: float = uncertainty["entropy"].get("is_correct", 0) if uncertainty else 0
        measures: Mapping[str, float] = diagnosis.get("measures", _EMPTY) if diagnosis else _EMPTY
        if correct is None and kind == "verdict":
            yield at, RowError("is_correct", "true or false", None)
        elif not 0 <= bits <= 1.001:  # rounding
            yield at, RowError("uncertainty.entropy.is_correct", "bits from 0 to 1", bits)
        elif any(abs(each) > MAX_COST for each in measures.values()):
            yield at, RowError("diagnosis.measures", f"at most {MAX_COST:.0e}", measures)


def _without(of: _Columns, rows: Iterable[int]) -> _Columns:
    """The columns without some rows."""
    left = np.ones(len(of["number"]), dtype=bool)
    left[[*rows]] = False
    return {name: tuple(compress(values, left)) for name, values in of.items()}


def _is_stated(value: object) -> bool:
    return value is not None


def _vector(type_: Any, values: Sequence[Any]) -> Vector:
    """A fact as a column: 1, 0 or -1, true or false, a count, or an amount with NaN for none."""
    kinds = get_args(type_) or (type_,)
    if bool in kinds:
        is_known = type(None) not in kinds
        return np.array([*map(bool, values)], dtype=bool) if is_known else tristate(values)
    if int in kinds:
        return np.array([n or 0 for n in values], dtype=np.int32)
    amounts = numbers(values)
    return np.where(np.abs(amounts) <= MAX_COST, amounts, np.nan)


def _own_errors(errors: Mapping[str, bool] | None) -> tuple[tuple[str, bool], ...]:
    """The flags of codes other than E1 to E6, by code."""
    if not errors or errors.keys() <= _SHIPPED_CODES:
        return ()
    return tuple((c, f) for c, f in errors.items() if c not in _SHIPPED_CODES)


def _unseen(shown: int | None, of: int | None, kinds: list[Any] | None) -> int:
    """A bit for each of ``UNSEEN``."""
    if shown == of and not kinds:
        return 0
    return sum(1 << UNSEEN.index(name) for name in unseen_of(shown, of, kinds))


def _is_off_form(findings: list[dict[str, Any]] | None) -> bool:
    """True if one of the findings is about the form of the reply."""
    return any(finding.get("rule") == "format" for finding in findings or ())


def _counts(usages: Sequence[Mapping[str, int] | None]) -> Vector:
    """Shape (n, 7): the counts of each usage; -1 if none is stated."""
    names = tuple(Usage.model_fields)
    none = [-1] * len(names)
    counts = [none if usage is None else [usage.get(n, 0) for n in names] for usage in usages]
    return np.array(counts, dtype=np.int32).reshape(-1, len(names))


def _case_keys(
    items: Sequence[bytes | None],
    cases: Sequence[bytes | None],
    contents: Sequence[str | None],
    item_keys: Vector,
) -> Vector:
    """Shape (n, 2): keys of each row's case, which is the item if the row names none.

    If a row names no case other than itself, its content identifies the case.
    """
    at = [i for i, case in enumerate(cases) if case is not None and case != items[i]]
    names = item_keys.copy()
    names[at] = keys_of(cases[i] for i in at)
    own = names.copy()
    by_content = sorted({i for i, of in enumerate(contents) if of is not None} - {*at})
    own[by_content] = keys_of(encoded(f"content\0{contents[i]}" for i in by_content))
    return np.stack([names, own], axis=1)
