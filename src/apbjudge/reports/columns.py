"""Judgements as columns: a few dozen bytes a row, so that a million of them fit."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..judge.task import short_key
from ..records import ERROR_CODES

Vector = np.ndarray[Any, Any]

BY_FIELDS = ("category", "modality", "stage", "steps", "horizon", "dataset")
"""Fields by which results can be broken down."""

NO_FLAGS = 255
_UNSET = -1
_LABELLED = ("protocol", "tested_model", "form", "unsolvable_type", *BY_FIELDS)

Profile = tuple[str | int | None, ...]
"""Everything by which a judgement is grouped; a run has few different ones."""


@dataclass(frozen=True, slots=True)
class Columns:
    """One entry per judgement in each vector.

    Attributes:
        profile: Index of the judgement's profile (protocol, tested model, form, …).
        codes: For each grouping field, a code per profile.
        labels: For each grouping field, the text behind a code.
        levels: Number of distractors, per profile.
        case: Number of the case.
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
    profiles: dict[Profile, int] = {}
    profile, case, item = array("i"), array("Q"), array("Q")
    numbers = {name: array("d") for name in ("grade", "cost")}
    names = ("scored", "correct", "category", "distractor", "inconsistent", "overridden")
    small = {name: array("b") for name in names}
    errors = array("B")
    totals = Totals(0, {}, 0, 0, 0.0, 0, 0, 0, 0, 0, 0)
    for row in rows:
        _count(row, totals)
        if row["protocol"] is None:
            continue
        profile.append(profiles.setdefault(_profile(row), len(profiles)))
        case.append(short_key(row["case_id"]))
        if items:
            item.append(short_key(row["item_id"]))
        used = row["uses_distractor"]
        small["scored"].append(row["kind"] == "verdict")
        small["correct"].append(bool(row["is_correct"]))
        small["category"].append(row["category"] or 0)
        small["distractor"].append(_UNSET if used is None else bool(used))
        small["inconsistent"].append(bool(row["inconsistent"]))
        small["overridden"].append(bool(row["overrides"]))
        numbers["grade"].append(_number(row["grade"]))
        numbers["cost"].append(_number(row["plan_cost"]))
        errors.append(_mask(row["errors"]))
    codes, labels = _codes(list(profiles))
    columns = Columns(
        profile=np.asarray(profile),
        codes=codes,
        labels=labels,
        levels=np.array([key[-1] for key in profiles], dtype=np.int64),
        case=_numbered(case),
        item=np.asarray(item),
        errors=np.asarray(errors),
        **{name: np.asarray(values) for name, values in {**small, **numbers}.items()},
    )
    return columns, totals


def _numbered(keys: array[int]) -> Vector:
    return np.unique(np.asarray(keys), return_inverse=True)[1].astype(np.int32)


def _profile(row: Mapping[str, Any]) -> Profile:
    groups: Mapping[str, Any] = row["groups"]
    form = "holistic" if groups.get("horizon") is None else "step-wise"
    by = [_label(groups.get(name)) for name in BY_FIELDS]
    kind = groups.get("unsolvable_type")
    return (row["protocol"], row["tested_model"], form, kind, *by, groups.get("level") or 0)


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


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _mask(errors: Mapping[str, bool] | None) -> int:
    if errors is None:
        return NO_FLAGS
    return sum(1 << i for i, code in enumerate(ERROR_CODES) if errors[code])
