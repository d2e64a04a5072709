"""Judgements as columns: a few dozen bytes a row, so that a million of them fit."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from ..records import ERROR_CODES

Vector = np.ndarray[Any, Any]

BY_FIELDS = ("category", "modality", "stage", "steps", "horizon", "dataset")
"""Fields by which results can be broken down."""

NO_FLAGS = 255
_UNSET = -1


@dataclass(frozen=True, slots=True)
class Columns:
    """One entry per judgement in each array.

    Attributes:
        protocol: Code into ``labels["protocol"]``; likewise ``tested_model``, ``form``,
            ``unsolvable_type`` and the fields of BY_FIELDS, in ``coded``.
        case: 64-bit key of the case.
        scored: Whether there is a verdict.
        correct: 0 or 1; 0 where unscored.
        grade: NaN where there is none.
        errors: Bit i set for code E(i+1); NO_FLAGS where there are none.
        category: 1–5, or 0.
        cost: Plan cost, NaN where there is none.
        distractor: 1 used, 0 not used, -1 no distractors.
        level: Number of distractors.
        inconsistent, overridden: 0 or 1.
    """

    coded: dict[str, Vector]
    labels: dict[str, list[str | None]]
    case: Vector
    scored: Vector
    correct: Vector
    grade: Vector
    errors: Vector
    category: Vector
    cost: Vector
    distractor: Vector
    level: Vector
    inconsistent: Vector
    overridden: Vector

    def label(self, field: str, code: int) -> str | None:
        """The text behind a code."""
        return self.labels[field][code]


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


_CODED = ("protocol", "tested_model", "form", "unsolvable_type", *BY_FIELDS)


def read_columns(rows: Iterable[Mapping[str, Any]]) -> tuple[Columns, Totals]:
    """Reads judgement rows; rows that never became an item (no protocol) count in totals only.

    Args:
        rows: Rows of ``judgements.jsonl``.

    Returns:
        The columns and the totals.
    """
    coded = {name: array("i") for name in _CODED}
    codes: dict[str, dict[str | None, int]] = {name: {} for name in _CODED}
    case, numbers = array("Q"), {name: array("d") for name in ("grade", "cost")}
    small = {name: array("b") for name in ("scored", "correct", "category", "distractor")}
    marks = {name: array("b") for name in ("inconsistent", "overridden")}
    errors, level = array("B"), array("i")
    totals = Totals(0, {}, 0, 0, 0.0, 0, 0, 0, 0)
    for row in rows:
        _count(row, totals)
        if row["protocol"] is None:
            continue
        groups: Mapping[str, Any] = row["groups"]
        for name in _CODED:
            value = _coded_value(name, row, groups)
            known = codes[name]
            coded[name].append(known.setdefault(value, len(known)))
        case.append(_case_key(row["case_id"]))
        small["scored"].append(row["kind"] == "verdict")
        small["correct"].append(bool(row["is_correct"]))
        small["category"].append(row["category"] or 0)
        used = row["uses_distractor"]
        small["distractor"].append(_UNSET if used is None else bool(used))
        marks["inconsistent"].append(bool(row["inconsistent"]))
        marks["overridden"].append(bool(row["overrides"]))
        numbers["grade"].append(_number(row["grade"]))
        numbers["cost"].append(_number(row["plan_cost"]))
        errors.append(_mask(row["errors"]))
        level.append(groups.get("level") or 0)
    vectors = {name: np.asarray(values) for name, values in {**small, **numbers, **marks}.items()}
    columns = Columns(
        coded={name: np.asarray(values) for name, values in coded.items()},
        labels={name: list(known) for name, known in codes.items()},
        case=np.asarray(case),
        errors=np.asarray(errors),
        level=np.asarray(level),
        **vectors,
    )
    return columns, totals


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
        if row["cost_usd"] is None:
            totals.cost_usd = None
    if totals.cost_usd is not None:
        totals.cost_usd += row["cost_usd"] or 0.0


def _coded_value(name: str, row: Mapping[str, Any], groups: Mapping[str, Any]) -> str | None:
    if name in ("protocol", "tested_model"):
        return row[name]
    if name == "form":
        return "holistic" if groups.get("horizon") is None else "step-wise"
    value = groups.get(name)
    return None if value is None else str(value)


def _case_key(case_id: str) -> int:
    digest = blake2b(case_id.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _mask(errors: Mapping[str, bool] | None) -> int:
    if errors is None:
        return NO_FLAGS
    return sum(1 << i for i, code in enumerate(ERROR_CODES) if errors[code])
