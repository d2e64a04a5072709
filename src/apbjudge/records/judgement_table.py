"""The judgements of a run as columns: what every figure, comparison and table is made of.

A row takes about 200 bytes, so that a million of them fit; its own text is read back from the
file when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from operator import is_, itemgetter
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from pydantic import ValidationError

from ..errors import InputError, RowError, visible
from ..jsonl import read_lines
from .columns import (
    CHUNK,
    Codes,
    Scores,
    Texts,
    Vector,
    encoded,
    flag_bits,
    keys_of,
    numbers,
    texts_of,
    tristate,
)
from .judgements import Usage
from .keys import model_key, short_key
from .labels import CATEGORY, GRADE, place_of_category, place_of_grade
from .scales import ScaleCheck

Problems = list[str]
"""Complaints about single rows, ``file:line: field …``."""

BY_FIELDS = ("category", "modality", "stage", "steps", "horizon", "dataset")
"""Fields by which results can be broken down."""

MAX_COST = 1e15
"""No plan costs more: beyond it sums of squares are no numbers any more."""

_GROUPS = (*BY_FIELDS, "unsolvable_type", "level")
_PROFILE = ("protocol", "tested_model", "rubric", "decided_by", *_GROUPS)
_MODEL = _PROFILE.index("tested_model")
NOT_STATED = "not stated"

Profile = tuple[Any, ...]
"""Everything by which a judgement is grouped; a run has few different ones."""


@dataclass(slots=True)
class Totals:
    """What is counted over all judgements of a run, whatever their group."""

    rows: int
    unscored: dict[str, int]
    inconsistent: int
    overridden: int
    cost_usd: float | None
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    calls: int
    lost: int
    reused: int


@dataclass(frozen=True, kw_only=True)
class JudgementTable(Scores):
    """One entry per judgement in each vector; a row without verdict has no scores.

    Attributes:
        judge: Name of the judge.
        path: File of the judgements; None where they were in memory.
        profiles: The different values of ``_PROFILE``, as they stand in the rows.
        profile: Index of each row's profile.
        position: Byte offset of the row in the file.
        item_id: Item id; None for a row that never had one.
        case_id: Case id; None where the row names none.
        item: uint64, key of the item id.
        case_keys: Shape (n, 2), uint64: keys of the case by its name and by its content. They are
            the same unless a row names no case but itself.
        scored: Whether there is a verdict.
        cost: Plan cost, NaN where there is none.
        distractor: 1 used, 0 not used, -1 no distractors.
        matches: 1 the reference's tools in its order, 0 others, -1 not known.
        inconsistent: Whether the judge's last reply contradicted itself.
        overridden: Whether a rule changed the verdict.
        off_form: Whether code found something against the form of the reply.
        entropy: Bits of ``is_correct``, NaN where not measured.
        p_correct: Share of the judge's replies that said correct, NaN where not measured.
        cost_usd: Price of the calls, NaN where not known.
        latency_s: Seconds, NaN where not known.
        reason: Index into ``reasons``: why there is no verdict.
        reasons: The different reasons.
        usage: Shape (n, 6): the counts of ``Usage``; -1 where a row states none.
    """

    judge: str = ""
    path: Path | None = None
    profiles: list[Profile] = field(repr=False)
    profile: Vector
    position: Vector
    item_id: Texts
    case_id: Texts
    item: Vector
    case_keys: Vector
    scored: Vector
    cost: Vector
    distractor: Vector
    matches: Vector
    inconsistent: Vector
    overridden: Vector
    off_form: Vector
    entropy: Vector
    p_correct: Vector
    cost_usd: Vector
    latency_s: Vector
    reason: Vector
    reasons: list[str] = field(repr=False)
    usage: Vector

    def take(self, rows: Vector) -> Self:
        """The table of some rows, with those profiles alone that they have."""
        used, profile = np.unique(self.profile[rows], return_inverse=True)
        of = {name: getattr(self, name) for name in _ROW_FIELDS}
        taken = {
            name: column.take(rows) if isinstance(column, Texts) else column[rows]
            for name, column in of.items()
        }
        taken["profile"] = profile.astype(np.int32)
        return replace(self, profiles=[self.profiles[at] for at in used.tolist()], **taken)

    @classmethod
    def joined(cls, tables: Sequence[JudgementTable]) -> JudgementTable:
        """The rows of several runs; judge and path are those of the first."""
        if len(tables) == 1:
            return tables[0]
        profiles, reasons = Codes(), Codes()
        found: dict[str, Any] = {
            name: Texts.joined([getattr(table, name) for table in tables])
            if name in {"item_id", "case_id"}
            else np.concatenate([getattr(table, name) for table in tables])
            for name in _ROW_FIELDS
        }
        for name, codes in (("profile", profiles), ("reason", reasons)):
            parts = [codes.of(getattr(t, name + "s"))[getattr(t, name)] for t in tables]
            found[name] = np.concatenate(parts)
        return replace(tables[0], profiles=profiles.names, reasons=reasons.names, **found)

    # Items ----------------------------------------------------------------------------------------

    @cached_property
    def is_item(self) -> Vector:
        """Whether a row became an item; others count in totals only."""
        return np.array([profile[0] is not None for profile in self.profiles], dtype=bool)[
            self.profile
        ]

    def items(self) -> Self:
        """The rows that became items."""
        return self if self.is_item.all() else self.take(np.flatnonzero(self.is_item))

    @cached_property
    def has_id(self) -> Vector:
        """Whether a row names its item."""
        return self.item_id.ends >= 0

    @cached_property
    def key(self) -> Vector:
        """Keys of item and tested model, as those of labels."""
        return self.keys(by_model=True, by_protocol=False)

    def keys(self, *, by_model: bool, by_protocol: bool) -> Vector:
        """Keys of the items, under the same tested model or protocol where these count."""
        models = [model_key(p[_MODEL]) if by_model else 0 for p in self.profiles]
        protocols = [short_key("protocol", p[0] or "") * by_protocol for p in self.profiles]
        of = np.array(models, dtype=np.uint64) ^ np.array(protocols, dtype=np.uint64)
        return self.item ^ of[self.profile]

    def tested_model(self, at: int) -> str | None:
        """Tested model of a row."""
        return self.profiles[int(self.profile[at])][_MODEL]

    def name_of(self, at: int) -> str:
        """Item and tested model of a row, for messages."""
        return f"{visible(str(self.item_id[at]))} of {visible(str(self.tested_model(at)))}"

    def first_rows(self, problems: Problems, *, by_protocol: bool = False) -> Self:
        """The first row of each item and tested model: a label could not tell others from it.

        Args:
            problems: Gets a line when there are more.
            by_protocol: Whether an item under another protocol is another one. Then rows that
                never became items are all left in.
        """
        keys = self.keys(by_model=True, by_protocol=by_protocol)
        rows = np.flatnonzero(self.is_item) if by_protocol else np.arange(len(self))
        _, first, times = np.unique(keys[rows], return_index=True, return_counts=True)
        if len(first) == len(rows):
            return self
        kept = np.zeros(len(self), dtype=bool)
        kept[rows[first]] = True
        if by_protocol:
            kept |= ~self.is_item
        example = int(rows[first[times > 1].min()])
        problems.append(
            f"{self.path}: item_id: expected one row per item and tested model, got "
            f"{int((~kept).sum())} more, such as {self.name_of(example)}: the first one counts"
        )
        return self.take(np.flatnonzero(kept))

    # Groups ---------------------------------------------------------------------------------------

    @cached_property
    def codes(self) -> dict[str, Vector]:
        """For each grouping field, a code per profile."""
        return {name: codes for name, (codes, _) in self._labelled.items()}

    @cached_property
    def labels(self) -> dict[str, list[str | None]]:
        """For each grouping field, the text behind a code."""
        return {name: labels for name, (_, labels) in self._labelled.items()}

    @cached_property
    def _labelled(self) -> dict[str, tuple[Vector, list[str | None]]]:
        columns = dict(zip(_PROFILE, zip(*self.profiles, strict=True), strict=False))
        texts = {
            name: [None if value is None else str(value) for value in columns.get(name, ())]
            for name in _PROFILE
        }
        forms = ["holistic" if value is None else "step-wise" for value in texts["horizon"]]
        found: dict[str, tuple[Vector, list[str | None]]] = {}
        for name, column in {**texts, "form": forms}.items():
            known = Codes()
            found[name] = known.of(column).astype(np.int64), known.names
        return found

    @cached_property
    def levels(self) -> Vector:
        """Number of distractors, per profile."""
        given = (profile[-1] for profile in self.profiles)
        return np.array([v if isinstance(v, int) else 0 for v in given], dtype=np.int64)

    def code(self, field: str, rows: Vector) -> Vector:
        """Codes of a grouping field for some rows."""
        return self.codes[field][self.profile[rows]]

    def level(self, rows: Vector) -> Vector:
        """Number of distractors for some rows."""
        return self.levels[self.profile[rows]]

    def where(self, of_profile: Vector) -> Vector:
        """Rows whose profile is marked.

        Args:
            of_profile: Boolean, one entry per profile.
        """
        return np.flatnonzero(of_profile[self.profile])

    def values(self, name: str) -> list[Any]:
        """A field of ``_PROFILE`` as it stands in each row."""
        at = _PROFILE.index(name)
        return [self.profiles[code][at] for code in self.profile.tolist()]

    @cached_property
    def case(self) -> Vector:
        """Numbers of the cases; see ``case_numbers``."""
        return case_numbers(self.case_keys[:, 0], self.case_keys[:, 1])

    def share_cases(self, rows: Vector) -> bool:
        """Whether any two of some rows belong to one case."""
        return bool((np.bincount(self.case[rows]) > 1).any())

    @property
    def totals(self) -> Totals:
        """Counts over all rows."""
        reasons = self.reason[~self.scored].tolist()
        by_reason = np.bincount(reasons, minlength=1).tolist()
        has_usage = self.usage[:, 0] >= 0
        is_priced = not np.any(has_usage & np.isnan(self.cost_usd))
        names = ("prompt_tokens", "completion_tokens", "cached_tokens", "calls", "lost", "reused")
        counts = self.usage[has_usage].sum(axis=0, dtype=np.int64).tolist()
        return Totals(
            rows=len(self),
            unscored={self.reasons[at]: by_reason[at] for at in dict.fromkeys(reasons)},
            inconsistent=int(self.inconsistent.sum()),
            overridden=int(self.overridden.sum()),
            cost_usd=sum(np.nan_to_num(self.cost_usd).tolist(), 0.0) if is_priced else None,
            **dict(zip(names, counts, strict=True)),
        )


_ROW_FIELDS = tuple(
    f.name for f in fields(JudgementTable) if f.name not in {"judge", "path", "profiles", "reasons"}
)


def case_numbers(cases: Vector, contents: Vector) -> Vector:
    """Numbers of cases from 0, the same for rows that share either key, directly or in a chain.

    Args:
        cases: Shape (n,), keys of ``case_id``.
        contents: Shape (n,), keys of contents; that of the name where it names the case.

    Returns:
        Shape (n,), int32.
    """
    number = np.unique(cases, return_inverse=True)[1].astype(np.int32)
    if np.array_equal(cases, contents):
        return number
    _, first, content = np.unique(contents, return_index=True, return_inverse=True)
    if np.array_equal(number[first][content], number):
        return number
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components  # pyright: ignore[reportUnknownVariableType]

    n_cases = int(number.max()) + 1
    edges = number, content + n_cases
    size = n_cases + len(first)
    graph = coo_array((np.ones(len(number), dtype=bool), edges), shape=(size, size))
    _, component = cast("tuple[int, Vector]", connected_components(graph, directed=False))
    return component[number].astype(np.int32)


# Reading ------------------------------------------------------------------------------------------


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
    "groups": ((dict, _NONE), "values by name, or null"),
    "doubt": ((dict, _NONE), "numbers by name, or null"),
}
"""Fields that judgements of older versions don't have."""

LENIENT: Mapping[str, tuple[type, ...]] = {
    "case_id": (str, _NONE),
    "protocol": (str, _NONE),
    "rubric": (str, _NONE),
    "decided_by": (str, _NONE),
    "content_id": (str, _NONE),
    "plan_cost": (float, int, _NONE),
    "uses_distractor": (bool, _NONE),
    "inconsistent": (bool, _NONE),
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
_NO_USAGE = (-1,) + (0,) * (len(_COUNTS) - 1)
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
    "errors": lambda row: all(isinstance(flag, bool) for flag in (row["errors"] or {}).values()),
    "doubt": lambda row: not row.get("doubt") or _is_entropy(row["doubt"].get("entropy")),
}


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


class _Reader:
    """Takes rows and makes columns of them, a chunk at a time.

    Rows whose fields are of the same kinds are alike: one of them is checked in full, the others
    for the ranges of their numbers.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.scales = ScaleCheck(path or Path("rows"))
        self._judge = self._first_judge = self._example = ""
        self._n_others = 0
        self._right: set[tuple[Any, ...]] = set()
        self._profiles, self._reasons = Codes(), Codes()
        self._chunk: list[tuple[Any, ...]] = []
        self._parts: list[dict[str, Any]] = []

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
        self._chunk.append((offset, *values))
        if len(self._chunk) == CHUNK:
            self._flush()
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

    def _flush(self) -> None:
        """Makes columns of the chunk."""
        n = len(self._chunk)
        position, *columns = zip(*self._chunk, strict=True) if n else [()] * (len(_NAMES) + 1)
        self._chunk = []
        of = dict(zip(_NAMES, columns, strict=True))
        items, cases = encoded(of["item_id"]), encoded(of["case_id"])
        scored = np.array([kind == "verdict" for kind in of["kind"]], dtype=bool)
        correct, grade = tristate(of["is_correct"]), numbers(of["grade"])
        category = np.array([value or 0 for value in of["category"]], dtype=np.int8)
        if self.path is not None:
            sure = ((grade > 0) & (grade < 1)) | ((correct >= 0) & (grade == correct))
            n_sure, n_graded = int(sure.sum()), int((~np.isnan(grade)).sum())
            self.scales.count(self._judge, "grade", n_sure, n_graded - n_sure)
            self.scales.count(self._judge, "category", 0, int((category > 0).sum()))
        flags, known = flag_bits(of["errors"])
        profiles = [
            (None if item is None else protocol, *rest, *map((groups or {}).get, _GROUPS))
            for item, protocol, *rest, groups in zip(
                items,
                *(of[name] for name in (*_PROFILE[: -len(_GROUPS)], "groups")),
                strict=True,
            )
        ]
        self._parts.append(
            {
                "correct": np.where(scored, correct, -1).astype(np.int8),
                "grade": np.where(scored, grade, np.nan),
                "flags": np.where(scored, flags, 0).astype(np.uint8),
                "known": np.where(scored, known, 0).astype(np.uint8),
                "category": np.where(scored, category, 0).astype(np.int8),
                "profile": self._profiles.of(profiles),
                "position": np.array(position, dtype=np.int64),
                "item_id": texts_of(items),
                "case_id": texts_of(cases),
                "item": (item := keys_of(items)),
                "case_keys": _case_keys(items, cases, of["content_id"], item),
                "scored": scored,
                "cost": _bounded(of["plan_cost"]),
                "distractor": tristate(of["uses_distractor"]),
                "matches": tristate(of["matches_reference"]),
                "inconsistent": np.array(list(map(bool, of["inconsistent"])), dtype=bool),
                "overridden": np.array(list(map(bool, of["overrides"])), dtype=bool),
                "off_form": np.array(list(map(_is_off_form, of["findings"])), dtype=bool),
                "entropy": numbers([_shares_of(doubt, "entropy") for doubt in of["doubt"]]),
                "p_correct": numbers([_shares_of(doubt, "shares") for doubt in of["doubt"]]),
                "cost_usd": _bounded(of["cost_usd"]),
                "latency_s": numbers(of["latency_s"]),
                "reason": self._reasons.of([reason or NOT_STATED for reason in of["reason"]]),
                "usage": np.array(list(map(_counts, of["usage"])), np.int32).reshape(
                    n, len(_COUNTS)
                ),
            }
        )

    def table(self) -> JudgementTable:
        """The table of all rows that were taken in."""
        if self._chunk or not self._parts:
            self._flush()
        columns: dict[str, Any] = {}
        for name in _ROW_FIELDS:
            parts = [part.pop(name) for part in self._parts]
            is_text = parts and isinstance(parts[0], Texts)
            columns[name] = Texts.joined(parts) if is_text else np.concatenate(parts)
        return JudgementTable(
            judge=self._judge or self._first_judge,
            path=self.path,
            profiles=self._profiles.names,
            reasons=self._reasons.names,
            **columns,
        )


_OF_REQUIRED, _OPTIONAL = itemgetter(*_REQUIRED), _NAMES[len(_REQUIRED) :]
_JUDGE = _NAMES.index("judge")
_STATES = itemgetter(*map(_NAMES.index, ("kind", "is_correct", "category")))
_RANGED = itemgetter(*map(_NAMES.index, ("grade", "errors", "groups", "doubt")))


def _is_odd(values: tuple[Any, ...]) -> bool:
    """Whether a field of the right kind holds what it should not, or may not."""
    grade, errors, groups, doubt = _RANGED(values)
    return (
        (grade is not None and not 0 <= grade <= 1)
        or (errors and {*map(type, errors.values())} != {bool})
        or (groups and not {*map(type, groups.values())} <= {str, int, _NONE})
        or (doubt and not _is_plain(doubt))
    )


def usable(name: str, value: Any) -> Any:
    """The value of a field; None where it is of a kind of which nothing could be made."""
    if name == "groups" and value and not {*map(type, value.values())} <= {str, int, _NONE}:
        return {k: v if type(v) in (str, int, _NONE) else str(v) for k, v in value.items()}
    return None if name in LENIENT and type(value) not in LENIENT[name] else value


def _is_plain(doubt: Mapping[str, Any]) -> bool:
    """Whether the entropy of ``is_correct`` is a number of bits."""
    entropy = doubt.get("entropy")
    bits = entropy.get("is_correct") if type(entropy) is dict else None
    return type(bits) is float and 0 <= bits <= 1.001


def _shares_of(doubt: Mapping[str, Any] | None, name: str) -> float | None:
    """What a doubt states of ``is_correct``: its ``entropy``, or the ``shares`` that say so."""
    of = doubt.get(name) if doubt else None
    value = of.get("is_correct") if isinstance(of, dict) else None
    return value if type(value) in (float, int) else None


def _is_off_form(findings: list[Any] | None) -> bool:
    """Whether one of the findings is about the form of the reply."""
    return bool(findings) and any(
        isinstance(one, dict) and cast("dict[str, Any]", one).get("rule") == "format"
        for one in findings
    )


def _counts(usage: dict[str, Any] | None) -> tuple[int, ...]:
    """The counts of a usage; those of none where it is not stated in numbers."""
    if usage is None:
        return _NO_USAGE
    found = tuple(map(usage.get, _COUNTS))
    if {*map(type, found)} != {int} or len(usage) != len(_COUNTS):
        try:
            found = tuple(Usage.model_validate(usage).__dict__.values())
        except ValidationError:
            return _NO_USAGE
    return found if min(found) >= 0 and max(found) < _MOST_TOKENS else _NO_USAGE


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
