"""Judgements as columns: a few dozen bytes a row, so that a million of them fit."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..records import ERROR_CODES
from .task import short_key

Vector = np.ndarray[Any, Any]

BY_FIELDS = ("category", "modality", "stage", "steps", "horizon", "dataset")
"""Fields by which results can be broken down."""

NO_FLAGS = 255
_UNSET = -1
_LABELLED = ("protocol", "tested_model", "rubric", "form", "unsolvable_type", *BY_FIELDS)

Profile = tuple[str | int | None, ...]
"""Everything by which a judgement is grouped; a run has few different ones."""


@dataclass(frozen=True, slots=True)
class Columns:
    """One entry per judgement in each vector.

    Attributes:
        profile: Index of the judgement's profile (protocol, tested model, rubric, form, …).
        codes: For each grouping field, a code per profile.
        labels: For each grouping field, the text behind a code.
        levels: Number of distractors, per profile.
        case: Number of the case; see ``case_numbers``.
        item: Key of the item id, the same in every run and for all tested models; empty unless
            asked for.
        scored: Whether there is a verdict.
        correct: 0 or 1; 0 where unscored.
        grade: NaN where there is none.
        errors: Bit i set for code E(i+1); NO_FLAGS where there are none.
        category: 1–5, or 0.
        cost: Plan cost, NaN where there is none.
        distractor: 1 used, 0 not used, -1 no distractors.
        inconsistent: 0 or 1.
        overridden: 0 or 1.
        off_form: 1 where code says something against the form of the reply, else 0.
    """

    profile: Vector
    codes: dict[str, Vector]
    labels: dict[str, list[str | None]]
    levels: Vector
    case: Vector
    item: Vector
    scored: Vector
    correct: Vector
    grade: Vector
    errors: Vector
    category: Vector
    cost: Vector
    distractor: Vector
    inconsistent: Vector
    overridden: Vector
    off_form: Vector

    def code(self, field: str, rows: Vector) -> Vector:
        """Codes of a grouping field for some rows."""
        return self.codes[field][self.profile[rows]]

    def level(self, rows: Vector) -> Vector:
        """Number of distractors for some rows."""
        return self.levels[self.profile[rows]]

    def share_cases(self, rows: Vector) -> bool:
        """Whether any two of some rows belong to one case."""
        return bool((np.bincount(self.case[rows]) > 1).any())

    def where(self, of_profile: Vector) -> Vector:
        """Rows whose profile is marked.

        Args:
            of_profile: Boolean, one entry per profile.
        """
        return np.flatnonzero(of_profile[self.profile])


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


def read_columns(
    rows: Iterable[Mapping[str, Any]], *, items: bool = False
) -> tuple[Columns, Totals]:
    """Reads judgement rows; rows that never became an item (no protocol) count in totals only.

    Args:
        rows: Rows of ``judgements.jsonl``.
        items: Whether to tell items apart too, for comparisons item by item.

    Returns:
        The columns and the totals.
    """
    found, totals = _Growing(), Totals(0, {}, 0, 0, 0.0, 0, 0, 0, 0, 0, 0)
    for row in rows:
        _count(row, totals)
        if row["protocol"] is not None:
            found.add(row, items=items)
    return found.columns(), totals


_TYPES: Mapping[str, str] = {
    "profile": "i",
    **dict.fromkeys(("case", "content", "item"), "Q"),
    **dict.fromkeys(("scored", "correct", "category"), "b"),
    **dict.fromkeys(("distractor", "inconsistent", "overridden", "off_form"), "b"),
    **dict.fromkeys(("grade", "cost"), "d"),
    "errors": "B",
}
"""How an entry of each vector is stored, in the codes of ``array``."""


class _Growing:
    """The columns, row by row."""

    def __init__(self) -> None:
        self._profiles: dict[Profile, int] = {}
        self._vectors: dict[str, array[Any]] = {of: array(code) for of, code in _TYPES.items()}

    def add(self, row: Mapping[str, Any], *, items: bool) -> None:
        profiles, to, used = self._profiles, self._vectors, row["uses_distractor"]
        to["profile"].append(profiles.setdefault(_profile(row), len(profiles)))
        case, content = case_keys(row)
        to["case"].append(case)
        to["content"].append(content)
        if items:
            to["item"].append(short_key(row["item_id"]))
        to["scored"].append(row["kind"] == "verdict")
        to["correct"].append(bool(row["is_correct"]))
        to["category"].append(row["category"] or 0)
        to["distractor"].append(_UNSET if used is None else bool(used))
        to["inconsistent"].append(bool(row["inconsistent"]))
        to["overridden"].append(bool(row["overrides"]))
        to["off_form"].append(_is_off_form(row.get("findings")))
        to["grade"].append(number_or_nan(row["grade"]))
        to["cost"].append(number_or_nan(row["plan_cost"]))
        to["errors"].append(flags_of(row["errors"]))

    def columns(self) -> Columns:
        codes, labels = _codes(list(self._profiles))
        levels = np.array([key[-1] for key in self._profiles], dtype=np.int64)
        vectors: dict[str, Vector] = {of: np.asarray(own) for of, own in self._vectors.items()}
        vectors["case"] = case_numbers(vectors["case"], vectors.pop("content"))
        return Columns(codes=codes, labels=labels, levels=levels, **vectors)


def _is_off_form(findings: object) -> bool:
    """Whether a row has a finding about the form of the reply."""
    listed = cast("list[object]", findings) if isinstance(findings, list) else []
    return any(
        isinstance(one, Mapping) and cast("Mapping[str, Any]", one).get("rule") == "format"
        for one in listed
    )


def case_keys(row: Mapping[str, Any]) -> tuple[int, int]:
    """Keys by which a judgement's case is known: of its ``case_id`` and of its content.

    Where a row names no case but itself, its content tells of which case it is; a row that does
    name one has the key of that name twice.

    Args:
        row: A row of ``judgements.jsonl`` with a case_id.
    """
    case = short_key(row["case_id"])
    content = row.get("content_id")
    if row["case_id"] != row["item_id"] or not isinstance(content, str):
        return case, case
    return case, short_key("content", content)


def case_numbers(cases: Vector, contents: Vector) -> Vector:
    """Numbers of cases from 0, the same for rows that share either key, directly or in a chain.

    Args:
        cases: Shape (n,), keys of ``case_id``.
        contents: Shape (n,), keys of contents; see ``case_keys``.

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


def _profile(row: Mapping[str, Any]) -> Profile:
    groups: Mapping[str, Any] = row["groups"]
    form = "holistic" if groups.get("horizon") is None else "step-wise"
    by = [_label(groups.get(name)) for name in BY_FIELDS]
    kind = groups.get("unsolvable_type")
    who = (row["protocol"], row["tested_model"], row.get("rubric"))
    return (*who, form, kind, *by, groups.get("level") or 0)


def _label(value: object) -> str | None:
    return None if value is None else str(value)


def _codes(profiles: list[Profile]) -> tuple[dict[str, Vector], dict[str, list[str | None]]]:
    codes: dict[str, Vector] = {}
    labels: dict[str, list[str | None]] = {}
    for at, name in enumerate(_LABELLED):
        known: dict[Any, int] = {}
        column = [known.setdefault(profile[at], len(known)) for profile in profiles]
        codes[name], labels[name] = np.array(column, dtype=np.int64), list(known)
    return codes, labels


def _count(row: Mapping[str, Any], totals: Totals) -> None:
    totals.rows += 1
    if row["kind"] != "verdict":
        totals.unscored[row["reason"]] = totals.unscored.get(row["reason"], 0) + 1
    totals.inconsistent += bool(row["inconsistent"])
    totals.overridden += bool(row["overrides"])
    if (usage := row["usage"]) is not None:
        totals.prompt_tokens += usage["prompt_tokens"]
        totals.completion_tokens += usage["completion_tokens"]
        totals.cached_tokens += usage["cached_tokens"]
        totals.calls += usage["calls"]
        totals.lost += usage.get("lost", 0)
        totals.reused += usage.get("reused", 0)
        if row["cost_usd"] is None:
            totals.cost_usd = None
    if totals.cost_usd is not None:
        totals.cost_usd += row["cost_usd"] or 0.0


def number_or_nan(value: float | None) -> float:
    """A number as a vector holds it: NaN where there is none."""
    return math.nan if value is None else value


def flags_of(errors: Mapping[str, bool] | None) -> int:
    """Error codes as one number: bit i set for E(i+1); NO_FLAGS where nothing is said of any."""
    if not errors:
        return NO_FLAGS
    flags = 0
    for bit, code in _BITS:
        if errors.get(code):
            flags |= bit
    return flags


_BITS = tuple((1 << i, code) for i, code in enumerate(ERROR_CODES))
