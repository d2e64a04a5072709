"""Whether a judge is right as often in one part of the cases as in the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from ...statistics.estimates import Array, Estimate
from ...statistics.multiplicity import adjust
from ..heard import Heard, Observed
from ..verdicts import Probe, Table, concluded, exhibits_of, level_for, said_of, shown, unasked
from .splits import Split, beyond_kind, kind_of, mixed_alike

NAME = "subgroups"
TITLE = "Subgroups"
QUESTION = "Is the judge right as often in every part of the cases?"

FIELDS = ("dataset", "modality", "steps", "stage", "horizon", "tools")
GAP = 0.15
"""A gap of fifteen points between parts turns the order of tested models that differ in them."""
LEAST_CASES = 8
"""Intervals of fewer cases are too rough to be held against anything."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One value of a field against the rest.

    Attributes:
        field: Name of the field.
        value: The value.
        said: The judgements of both sides.
        is_right: Shape (n,): 1 where the verdict is true.
        split: What is compared: how far each is above or below others of its kind.
    """

    field: str
    value: str
    said: Sequence[Observed]
    is_right: Array
    split: Split

    @property
    def name(self) -> str:
        return f"{self.field} {self.value}"

    @property
    def has_enough(self) -> bool:
        sides = (self.split.first, ~self.split.first)
        return all(_n_cases(self.said, side) >= LEAST_CASES for side in sides)


def probe(heard: Heard) -> Probe:
    """Compares accuracy between each part of the cases and the rest.

    Args:
        heard: What was said.
    """
    said = [s for s in heard.scored("base", "fault", "harmless", "prediction") if _is_known(s)]
    found, left_out = _parts(said)
    if not found:
        needed = f"needs two values of one of {', '.join(FIELDS)}, each with {LEAST_CASES} cases"
        return replace(unasked(NAME, TITLE, QUESTION, needed), notes=tuple(left_out))
    level = level_for(len(found))
    measures = [part.split.measure(part.name, "within", GAP, level=level) for part in found]
    failing = {m.name for m in measures if m.standing == "fails"}
    worse = [p for p in found if p.name in failing]
    exhibits = exhibits_of(_wrong(worse), _told)
    return concluded(
        NAME,
        TITLE,
        QUESTION,
        measures=measures,
        tables=(_table(found, [m.estimate for m in measures]),),
        exhibits=exhibits,
        said=said,
        notes=(_MIXED, _TOGETHER, *left_out),
    )


_MIXED = (
    "each figure is the share of true verdicts in a part less that in the rest, where the rest has "
    "the part's mix of planted faults and changes: what is harder to see does not count against "
    "the part in which it was planted more often; faults of which the judge was shown a proof are "
    "left out; tools: how many are listed"
)
_TOGETHER = (
    "intervals hold for all comparisons together (Bonferroni); p-values are adjusted by Holm and "
    "are for readers, the limit decides"
)


def _is_known(said: Observed) -> bool:
    return said.variant.truth.is_correct is not None and not said.is_informed


def _parts(said: Sequence[Observed]) -> tuple[list[_Part], list[str]]:
    """What can be compared, and a sentence on each field that can't."""
    found: list[_Part] = []
    left_out: list[str] = []
    for name in FIELDS:
        here = [s for s in said if s.groups.get(name) is not None]
        values = sorted({str(s.groups[name]) for s in here})
        parts = [part for value in values if (part := _part(name, value, here)) is not None]
        enough = [part for part in parts if part.has_enough]
        if len(values) == 2:  # the other comparison is the same with the sign turned
            enough = enough[:1]
        found += enough
        if not enough:
            left_out.append(f"{name}: no two sides of {LEAST_CASES} cases each, not compared")
    return found, left_out


def _part(name: str, value: str, said: Sequence[Observed]) -> _Part | None:
    first = np.array([str(s.groups[name]) == value for s in said])
    weights = mixed_alike([kind_of(s) for s in said], first)
    kept: list[int] = np.flatnonzero(weights > 0).tolist()
    if not kept:
        return None
    said, first, weights = [said[i] for i in kept], first[kept], weights[kept]
    is_right = np.array([float(s.is_correct == s.variant.truth.is_correct) for s in said])
    beyond = beyond_kind(said, is_right)
    split = Split(said=said, values=beyond, first=first, weights=weights, bounds=(-1.0, 1.0))
    return _Part(name, value, said, is_right, split)


def _n_cases(said: Sequence[Observed], side: np.ndarray) -> int:
    return len({said[i].variant.case_id for i in np.flatnonzero(side).tolist()})


def _table(found: Sequence[_Part], estimates: Sequence[Estimate]) -> Table:
    adjusted = adjust([_p_value(part) for part in found], method="holm")
    rows = zip(found, estimates, adjusted, strict=True)
    return Table(
        title="Share of true verdicts in each part and in the rest, with the part's mix of kinds",
        columns=("part", "items", "cases", "here", "rest", "difference", "p (Holm)"),
        rows=tuple(_row(part, estimate, p) for part, estimate, p in rows),
    )


def _row(part: _Part, estimate: Estimate, p: float | None) -> tuple[str, ...]:
    first, weights = part.split.first, part.split.weights
    rates = [np.average(part.is_right[s], weights=weights[s]) for s in (first, ~first)]
    value, low, high = (shown("points", e) for e in (estimate.value, estimate.low, estimate.high))
    return (
        part.name,
        str(np.count_nonzero(first)),
        str(_n_cases(part.said, first)),
        *(shown("share", float(rate)) for rate in rates),
        f"{value} [{low}, {high}]",
        "–" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}",
    )


def _p_value(part: _Part) -> float | None:
    """Two-sided, from the half of the 95 % interval that points towards 0; approximate."""
    estimate = part.split.difference(0.95)
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return None
    value = estimate.value
    half = value - estimate.low if value > 0 else estimate.high - value
    normal = NormalDist()
    return 2 * normal.cdf(-abs(value) / max(half / normal.inv_cdf(0.975), 1e-12))


def _wrong(parts: Sequence[_Part]) -> Iterator[Observed]:
    """Wrong verdicts on the worse side of each comparison that fails."""
    seen: set[str] = set()
    for part in parts:
        is_worse = part.split.first == ((part.split.difference(0.95).value or 0.0) < 0)
        for i in np.flatnonzero(is_worse & (part.is_right == 0)).tolist():
            said = part.said[i]
            if said.variant.name not in seen:
                seen.add(said.variant.name)
                yield said


def _told(said: Observed) -> str:
    groups = ", ".join(f"{k} {v}" for k, v in said.groups.items() if k in FIELDS and v is not None)
    truth = "correct" if said.variant.truth.is_correct else "not correct"
    return f"{said.variant.what} ({groups}): in truth {truth}; judged {said_of(said)}"
