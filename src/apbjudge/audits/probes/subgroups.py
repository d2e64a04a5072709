"""Subgroups: accuracy of a judge in each part of the cases against the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from ...statistics.differences import adjust
from ...statistics.estimates import Array
from ..outcomes import ProbeTable, amount, amount_with_ends, verdict_text
from ..responses import Response
from .base import AuditProbe
from .measures import Split, Value, beyond_kind, kind_of_plan, mixed_alike

FIELDS = ("dataset", "modality", "steps", "stage", "horizon", "tools")
GAP = 0.15
"""A gap of fifteen points can reverse the order of models that are tested on different parts."""
LEAST_CASES = 8
"""Smallest number of cases in each part: intervals of fewer are too rough."""


@dataclass(frozen=True, slots=True)
class _Subgroup:
    """One value of a field against the rest.

    Attributes:
        name: Field and value.
        is_right: Shape (n,): 1 if the verdict is right, else 0.
        split: The compared values: each less the mean of its kind of plan.
    """

    name: str
    is_right: Array
    split: Split

    def n_cases(self, side: np.ndarray) -> int:
        return len({self.split.responses[i].variant.case_id for i in np.flatnonzero(side).tolist()})


class Subgroups(AuditProbe):
    """Compares accuracy between each part of the cases and the rest."""

    name = "subgroups"
    title = "Subgroups"
    question = "Is the judge right as often in every part of the cases?"
    roles = ("base", "fault", "harmless", "prediction")
    nothing = f"needs two values of one of {', '.join(FIELDS)}, each with {LEAST_CASES} cases"

    @cached_property
    def known(self) -> list[Response]:
        """Verdicts on plans of known truth, except those whose fault was proven to the judge."""
        scored = (r for r in self.audit.scored(*self.roles) if not r.is_informed)
        return [r for r in scored if r.variant.truth.is_correct is not None]

    @cached_property
    def by_field(self) -> dict[str, list[_Subgroup]]:
        """By field, the parts that can be compared."""
        fields: dict[str, list[_Subgroup]] = {}
        for name in FIELDS:
            here = [r for r in self.known if r.groups.get(name) is not None]
            values = sorted({str(r.groups[name]) for r in here})
            parts = [part for value in values if (part := _part(name, value, here)) is not None]
            # with two values, the second comparison is the first with the opposite sign
            fields[name] = parts[:1] if len(values) == 2 else parts
        return fields

    @cached_property
    def parts(self) -> list[_Subgroup]:
        """All parts that can be compared."""
        return [part for parts in self.by_field.values() for part in parts]

    def values(self) -> Iterable[Value]:
        """The share of true verdicts in each part less that in the rest."""
        return (part.split.value(part.name, GAP) for part in self.parts)

    def used(self) -> Iterable[Response]:
        """The verdicts, if any are compared."""
        return self.known if self.parts else ()

    def tables(self) -> Iterable[ProbeTable]:
        """Each part compared with the rest."""
        adjusted = adjust([_p_value(part) for part in self.parts], method="holm")
        rows: list[tuple[str, ...]] = []
        for part, measure, p in zip(self.parts, self.measures, adjusted, strict=True):
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
        yield ProbeTable(
            title="Share of true verdicts in each part and in the rest, with the part's mix of "
            "kinds",
            columns=("part", "items", "cases", "here", "rest", "difference", "p (Holm)"),
            rows=tuple(rows),
        )

    def examples(self) -> Iterable[tuple[Response, str]]:
        """Wrong verdicts on the worse side of each comparison that fails, each once."""
        wrong: dict[str, Response] = {}
        for part, measure in zip(self.parts, self.measures, strict=True):
            is_worse = part.split.first == ((measure.estimate.value or 0.0) < 0)
            is_wrong = is_worse & (part.is_right == 0) & (measure.outcome == "fails")
            for i in np.flatnonzero(is_wrong).tolist():
                response = part.split.responses[i]
                wrong.setdefault(response.variant.name, response)
        for r in wrong.values():
            fields = (f"{k} {v}" for k, v in r.groups.items() if k in FIELDS and v is not None)
            groups = ", ".join(fields)
            truth = "correct" if r.variant.truth.is_correct else "not correct"
            yield r, f"{r.variant.what} ({groups}): in truth {truth}; judged {verdict_text(r)}"

    def notes(self) -> Iterable[str]:
        """The comparison of parts, and the fields that can't be compared."""
        yield (
            "each figure is the share of true verdicts in a part minus that in the rest, where the "
            "rest has the part's mix of planted faults and changes: a fault that is harder to "
            "detect does not count against the part where it was planted more often; faults of "
            "which the judge was shown a proof are left out; tools: the number of listed tools"
        )
        yield (
            "intervals hold for all comparisons together (Bonferroni); p-values are adjusted by "
            "Holm's method and only inform; the limit decides"
        )
        for name, parts in self.by_field.items():
            if not parts:
                yield f"{name}: no two sides of {LEAST_CASES} cases each, not compared"


def _part(name: str, value: str, responses: Sequence[Response]) -> _Subgroup | None:
    """The part with a value of a field; None if a side has too few cases."""
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


def _p_value(part: _Subgroup) -> float | None:
    """Approximate two-sided p-value, from the half of the 95 % interval that points towards 0."""
    estimate = part.split.difference()
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return None
    value = estimate.value
    half = value - estimate.low if value > 0 else estimate.high - value
    normal = NormalDist()
    return 2 * normal.cdf(-abs(value) / max(half / normal.inv_cdf(0.975), 1e-12))
