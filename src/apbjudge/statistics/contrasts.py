"""Differences between parts of one sample: other items, perhaps of the same cases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from statistics import NormalDist

import numpy as np

from .comparison import detectable_difference, paired_test
from .intervals import CONFIDENCE_LEVEL, Array, Estimate, Ids, nothing, wilson
from .sample import Sample
from .shares import bounded, cluster_note


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """A difference, and how large one would have had to be to be seen.

    Attributes:
        estimate: The first less the second.
        detectable: Smallest true difference that this design finds with a power of 0.8; None
            where the error is not known.
    """

    estimate: Estimate
    detectable: float | None


def independent_difference(first: Estimate, second: Estimate) -> Contrast:
    """Difference of two figures that were measured on different, unrelated items.

    From the ends of the two intervals (MOVER: Zou & Donner 2008, doi:10.1002/sim.3095); for two
    rates with Wilson's interval it is Newcombe's hybrid score interval of 1998.

    Args:
        first: With an interval.
        second: With an interval, at the same level.

    Returns:
        The difference; without value, or without interval, where one of them has none, with the
        reason.

    When not to use it: where items share cases across the two: see ``part_difference``.
    """
    if first.value is None or second.value is None:
        reason = first.note if first.value is None else second.note
        return Contrast(estimate=nothing(first.level, note=reason), detectable=None)
    estimate = replace(
        first,
        value=first.value - second.value,
        low=None,
        high=None,
        method="none",
        n_items=first.n_items + second.n_items,
        n_clusters=first.n_clusters + second.n_clusters,
        n_resamples=0,
        seed=None,
        note=first.note or second.note,
    )
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return Contrast(estimate=estimate, detectable=None)
    return _mover(estimate, first, second, 0.0)


def part_difference(
    values: Array,
    first: Ids,
    second: Ids,
    sample: Sample,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    level: float = CONFIDENCE_LEVEL,
) -> Contrast:
    """Difference of the means of two parts of the items, which may share cases.

    From the ends of the two parts' intervals as in ``independent_difference``, with the
    correlation of the two means through the cases they share (Zou 2007,
    doi:10.1037/1082-989X.12.4.399). The intervals are those of ``bounded``, or of ``paired_test``
    where values may be below 0, as differences are. In simulations (rates of 0.5 to 0.98 among 10
    to 213 items a side; 15 to 60 cases that both sides share) 95 % intervals covered 93.9 % or
    more; Student's t around the difference of rates covered down to 89 %.

    Args:
        values: Shape (n,), within the bounds.
        first: Shape (n,), marks.
        second: Shape (n,), marks, of other items.
        sample: How the items were drawn.
        bounds: Least and greatest possible value of an item.
        level: Confidence level.

    When not to use it: with fewer than about ten units on either side.
    """
    one, other = (
        _interval(values[part], sample.take(part), bounds, level) for part in (first, second)
    )
    if one.value is None or other.value is None:
        return Contrast(estimate=nothing(level, note="one side has no items"), detectable=None)
    rows = first | second
    here = sample.take(rows)
    _, strata = here.units(int(np.count_nonzero(rows)))
    estimate = replace(
        one,
        value=one.value - other.value,
        low=None,
        high=None,
        method="none",
        n_items=one.n_items + other.n_items,
        n_clusters=len(strata),
        note=cluster_note(one.n_items + other.n_items, len(strata)),
    )
    if one.low is None or other.low is None:
        note = f"one side has no interval: {(one if one.low is None else other).note}"
        return Contrast(estimate=replace(estimate, note=note), detectable=None)
    return _mover(estimate, one, other, _correlation(values[rows], first[rows], here))


def _interval(values: Array, sample: Sample, bounds: tuple[float, float], level: float) -> Estimate:
    if bounds[0] < 0:
        return paired_test(values, sample, bounds=bounds, level=level).estimate
    return bounded(values, sample, bounds=bounds, level=level)


def _correlation(values: Array, first: Ids, sample: Sample) -> float:
    """Of the means of two parts, by what each unit adds to them; 0 where one shows no spread."""
    weights = np.ones(len(values)) if sample.weights is None else sample.weights
    unit, strata = sample.units(len(values))
    sums: list[Array] = []
    for part in (first, ~first):
        mean = np.average(values[part], weights=weights[part])
        residuals = np.where(part, weights * (values - mean), 0.0)
        by_unit = np.bincount(unit, residuals, len(strata))
        means = np.bincount(strata, by_unit) / np.maximum(np.bincount(strata), 1)
        sums.append(by_unit - means[strata])
    squares = float(sums[0] @ sums[0]) * float(sums[1] @ sums[1])
    return float(sums[0] @ sums[1]) / sqrt(squares) if squares > 1e-24 else 0.0


def _mover(estimate: Estimate, first: Estimate, second: Estimate, correlation: float) -> Contrast:
    """The interval of a difference from two that have one."""
    one, other = _reach(first), _reach(second)
    value = estimate.value or 0.0
    low = value - _across(one[0], other[1], correlation)
    high = value + _across(one[1], other[0], correlation)
    error = (high - low) / 2 / NormalDist().inv_cdf(0.5 + estimate.level / 2)
    return Contrast(
        estimate=replace(estimate, low=low, high=high, method="mover"),
        detectable=detectable_difference(error, level=estimate.level),
    )


def _reach(estimate: Estimate) -> tuple[float, float]:
    """How far the interval reaches down and up from its value; of rates, Wilson's own."""
    value, low, high = estimate.value or 0.0, estimate.low or 0.0, estimate.high or 0.0
    if estimate.method == "wilson-modified":
        n = estimate.n_items
        low, high = wilson(min(n, value * n), n, level=estimate.level)
    return value - low, high - value


def _across(one: float, other: float, correlation: float) -> float:
    return sqrt(max(0.0, one * one - 2 * correlation * one * other + other * other))
