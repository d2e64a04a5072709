"""Subgroups: accuracy of a judge in each part of the cases against the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ...statistics.differences import adjust
from ...statistics.estimates import Array
from ..outcomes import (
    Measure,
    Probe,
    ProbeSpec,
    ProbeTable,
    amount,
    amount_with_ends,
    decide,
    verdict_text,
)
from ..responses import AuditResponses, Response
from .measures import Split, beyond_kind, kind_of_plan, mixed_alike

SPEC = ProbeSpec(
    name="subgroups",
    title="Subgroups",
    question="Is the judge right as often in every part of the cases?",
)

FIELDS = ("dataset", "modality", "steps", "stage", "horizon", "tools")
GAP = 0.15
"""A gap of fifteen points between parts turns the order of tested models that differ in them."""
LEAST_CASES = 8
"""Intervals of fewer cases are too rough to be compared with anything."""

_MIXED = (
    "each figure is the share of true verdicts in a part minus that in the rest, where the rest "
    "has the part's mix of planted faults and changes: a fault that is harder to detect does not "
    "count against the part where it was planted more often; faults of which the judge was shown "
    "a proof are left out; tools: the number of listed tools"
)
_TOGETHER = (
    "intervals hold for all comparisons together (Bonferroni); p-values are adjusted by Holm's "
    "method and only inform; the limit decides"
)


@dataclass(frozen=True, slots=True)
class _Subgroup:
    """One value of a field against the rest.

    Attributes:
        name: Field and value.
        is_right: Shape (n,): 1 where the verdict is true.
        split: The compared values: the distance of each from others of its kind.
    """

    name: str
    is_right: Array
    split: Split

    def n_cases(self, side: np.ndarray) -> int:
        return len({self.split.responses[i].variant.case_id for i in np.flatnonzero(side).tolist()})


def probe(audit: AuditResponses) -> Probe:
    """Compares accuracy between each part of the cases and the rest."""
    known = [
        r
        for r in audit.scored("base", "fault", "harmless", "prediction")
        if r.variant.truth.is_correct is not None and not r.is_informed
    ]
    parts, remarks = _parts(known)
    if not parts:
        needed = f"needs two values of one of {', '.join(FIELDS)}, each with {LEAST_CASES} cases"
        return SPEC.unasked(needed, notes=remarks)
    measures = decide(part.split.measure(part.name, GAP) for part in parts)
    failing = {m.name for m in measures if m.outcome == "fails"}
    return SPEC.result(
        measures,
        known,
        tables=[_table(parts, measures)],
        examples=_examples([part for part in parts if part.name in failing]),
        notes=[_MIXED, _TOGETHER, *remarks],
    )


def _parts(known: Sequence[Response]) -> tuple[list[_Subgroup], list[str]]:
    """The parts that can be compared, and a sentence on each field that can't."""
    result: list[_Subgroup] = []
    remarks: list[str] = []
    for name in FIELDS:
        here = [r for r in known if r.groups.get(name) is not None]
        values = sorted({str(r.groups[name]) for r in here})
        parts = [part for value in values if (part := _part(name, value, here)) is not None]
        if len(values) == 2:  # the other comparison is the same with the sign turned
            parts = parts[:1]
        result += parts
        if not parts:
            remarks.append(f"{name}: no two sides of {LEAST_CASES} cases each, not compared")
    return result, remarks


def _part(name: str, value: str, responses: Sequence[Response]) -> _Subgroup | None:
    """The part of a field's value; None where a side has too few cases."""
    first = np.array([str(r.groups[name]) == value for r in responses])
    weights = mixed_alike([kind_of_plan(r) for r in responses], first)
    at: list[int] = np.flatnonzero(weights > 0).tolist()
    if not at:
        return None
    chosen = [responses[i] for i in at]
    is_right = np.array([float(r.is_correct == r.variant.truth.is_correct) for r in chosen])
    split = Split(
        responses=chosen,
        values=beyond_kind(chosen, is_right),
        first=first[at],
        weights=weights[at],
        bounds=(-1.0, 1.0),
    )
    part = _Subgroup(f"{name} {value}", is_right, split)
    sides = (split.first, ~split.first)
    return part if all(part.n_cases(side) >= LEAST_CASES for side in sides) else None


def _table(parts: Sequence[_Subgroup], measures: Sequence[Measure]) -> ProbeTable:
    adjusted = adjust([_p_value(part) for part in parts], method="holm")
    rows: list[tuple[str, ...]] = []
    for part, measure, p in zip(parts, measures, adjusted, strict=True):
        first, weights = part.split.first, part.split.weights
        rates = [np.average(part.is_right[s], weights=weights[s]) for s in (first, ~first)]
        rows.append(
            (
                part.name,
                str(np.count_nonzero(first)),
                str(part.n_cases(first)),
                *(amount("share", float(rate)) for rate in rates),
                amount_with_ends("points", measure.estimate),
                "–" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}",
            )
        )
    return ProbeTable(
        title="Share of true verdicts in each part and in the rest, with the part's mix of kinds",
        columns=("part", "items", "cases", "here", "rest", "difference", "p (Holm)"),
        rows=tuple(rows),
    )


def _p_value(part: _Subgroup) -> float | None:
    """Two-sided, from the half of the 95 % interval that points towards 0; approximate."""
    estimate = part.split.difference()
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return None
    value = estimate.value
    half = value - estimate.low if value > 0 else estimate.high - value
    normal = NormalDist()
    return 2 * normal.cdf(-abs(value) / max(half / normal.inv_cdf(0.975), 1e-12))


def _examples(parts: Sequence[_Subgroup]) -> Iterable[tuple[Response, str]]:
    """Wrong verdicts on the worse side of each comparison that fails, each once."""
    wrong: dict[str, Response] = {}
    for part in parts:
        is_worse = part.split.first == ((part.split.difference().value or 0.0) < 0)
        for i in np.flatnonzero(is_worse & (part.is_right == 0)).tolist():
            response = part.split.responses[i]
            wrong.setdefault(response.variant.name, response)
    for r in wrong.values():
        groups = ", ".join(f"{k} {v}" for k, v in r.groups.items() if k in FIELDS and v is not None)
        truth = "correct" if r.variant.truth.is_correct else "not correct"
        yield r, f"{r.variant.what} ({groups}): in truth {truth}; judged {verdict_text(r)}"
