"""Differences: their intervals, tests and detectable sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import NormalDist
from typing import Literal, get_args

import numpy as np

from .bootstrap import RATIO, difference_of_ratios, resampled
from .estimates import (
    CONFIDENCE_LEVEL,
    Array,
    Estimate,
    Ids,
    cluster_note,
    nothing,
    t_quantile,
    two_sided,
)
from .proportions import Bounds, bounded, wilson, without_interval
from .sample import Sample, ratio_moments

POWER = 0.8
Correction = Literal["holm", "bh", "by"]
"""Adjustment of p-values; see ``adjust``."""


def adjust(p_values: Sequence[float | None], *, method: Correction) -> list[float | None]:
    """P-values adjusted for several tests.

    Args:
        p_values: Between 0 and 1; None for no test, which does not count.
        method: ``holm`` (Holm 1979) bounds the chance of any false finding under any dependence:
            for a family stated in advance. ``bh`` (Benjamini & Hochberg 1995) bounds the expected
            share of false findings for independent or positively dependent tests, ``by`` (Benjamini
            & Yekutieli 2001, doi:10.1214/aos/1013699998) for any dependence.

    Returns:
        Adjusted p-values in the same order, None for None.

    Raises:
        ValueError: If a p-value is out of range or the method unknown.
    """
    tested = [p for p in p_values if p is not None]
    if method not in get_args(Correction) or not all(0 <= p <= 1 for p in tested):
        raise ValueError(f"adjust: expected p-values from 0 to 1 by holm, bh or by, got {method!r}")
    if len(tested) < 2:
        return list(p_values)
    p, m = np.array(tested), len(tested)
    order = np.argsort(p, kind="stable")
    ranks = np.arange(1, m + 1)
    if method == "holm":
        adjusted = np.maximum.accumulate(p[order] * (m + 1 - ranks))
    else:
        dependence = (1 / ranks).sum() if method == "by" else 1.0
        steps = p[order] * (m / ranks * dependence)
        adjusted = np.minimum.accumulate(steps[::-1])[::-1]
    p[order] = np.minimum(adjusted, 1)
    in_order = iter(p.tolist())
    return [None if value is None else next(in_order) for value in p_values]


@dataclass(frozen=True, slots=True, kw_only=True)
class McNemar:
    """McNemar's test of two rates measured on the same items.

    Attributes:
        b: Items where only the first was right.
        c: Items where only the second was right.
        p_exact: Two-sided p-value of the exact conditional test; too large on average.
        p_mid: Its mid-p version, the better choice.
    """

    b: int
    c: int
    p_exact: float
    p_mid: float


def mcnemar(b: int, c: int) -> McNemar:
    """Tests that two rates differ, from the independent items on which the two disagree.

    Source: Fagerland, Lydersen & Laake 2013 (doi:10.1186/1471-2288-13-91).

    Args:
        b: Items where only the first was right, at least 0.
        c: Items where only the second was right.

    Returns:
        Exact conditional (binomial) and mid-p p-value; 1.0 when no item tells the two apart.

    Raises:
        ValueError: If a count is below 0.

    When not to use it: where items share cases (``paired_test`` with clusters).
    """
    if b < 0 or c < 0:
        raise ValueError(f"mcnemar: expected counts of at least 0, got {b=} {c=}")
    from scipy.special import bdtr  # the chance of at most k heads in n tosses

    n, least = b + c, min(b, c)
    if n == 0:
        return McNemar(b=b, c=c, p_exact=1.0, p_mid=1.0)
    below, upto = float(bdtr(least - 1, n, 0.5)) if least else 0.0, float(bdtr(least, n, 0.5))
    return McNemar(b=b, c=c, p_exact=min(1.0, 2 * upto), p_mid=min(1.0, upto + below))


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedTest:
    """A mean difference on the same items, with a test of 0.

    Attributes:
        estimate: The mean difference with its interval.
        p_value: Two-sided; below 1 - level exactly when the interval excludes 0 (except for
            intervals that are cut at the bounds or by bootstrap). None without an interval.
        method: ``t-bonett-price``, or ``none``.
        detectable: The smallest true difference that this many items detect with a power of 0.8.
    """

    estimate: Estimate
    p_value: float | None = None
    method: str = "none"
    detectable: float | None = None


def paired_test(
    differences: Array,
    sample: Sample,
    *,
    bounds: Bounds = (-1.0, 1.0),
    level: float = CONFIDENCE_LEVEL,
) -> PairedTest:
    """Mean of paired differences, its interval and a test of 0, by cluster.

    Student's t with the cluster-robust variance, after one unit has been added in each direction:
    Bonett & Price 2012 (doi:10.3102/1076998611411915) for 0/1 outcomes, here for clusters, weights
    and grades too. An added unit is as large as the observed differences (root mean square of those
    that are not 0), or as large as possible where all are 0. In simulations 95 % intervals covered
    93.6 % or more (docs/coverage.md).

    Args:
        differences: Shape (n,): first minus second, within the bounds.
        sample: Sampling design of the items; clusters are the independent units.
        bounds: Least and greatest possible difference.
        level: Confidence level.

    Returns:
        The estimate (the observed mean; the interval around the mean with the two added units),
        p-value and detectable difference. No interval if there is one unit, or one per stratum.

    Raises:
        ValueError: If a difference is missing or out of bounds.

    When not to use it: with fewer than about 10 clusters, where the t distribution is a rough
    guide; for differences of measures other than means (kappa, F1): resample those.
    """
    if not bool(np.all((differences >= bounds[0]) & (differences <= bounds[1]))):
        raise ValueError(f"differences: expected numbers from {bounds[0]} to {bounds[1]}")
    moments = ratio_moments(differences, np.ones(len(differences)), sample)
    if moments is None:
        return PairedTest(estimate=nothing(level))
    estimate = without_interval(moments, level)
    if moments.df == 0:
        return PairedTest(estimate=replace(estimate, note="too few units to show a spread"))
    some = differences[differences != 0]
    size = float(np.sqrt(np.mean(some * some))) if len(some) else max(map(abs, bounds))
    # Kish's effective number of units: the number of equal units that would be as precise
    sums = np.bincount(sample.units(len(differences))[0], weights=sample.weights)
    n = float(sums.sum() ** 2 / (sums**2).sum())
    # the mean and its error after adding +size and -size as separate units
    centre = n / (n + 2) * moments.value
    square = moments.variance * (n - 1) + moments.value**2
    error = sqrt((n / (n + 2) * square - centre**2 + 2 * size**2 / (n + 2)) / (n + 2))
    half = t_quantile(0.5 + level / 2, moments.df) * error
    estimate = replace(
        estimate,
        low=min(moments.value, max(bounds[0], centre - half)),
        high=max(moments.value, min(bounds[1], centre + half)),
        method="t-bonett-price",
    )
    columns = np.stack([differences, np.ones(len(differences))], axis=1)
    return PairedTest(
        estimate=resampled(estimate, columns, sample, RATIO),
        p_value=two_sided(centre / error, moments.df),
        method="t-bonett-price",
        detectable=detectable_difference(error, level=level),
    )


def newcombe(
    k1: float, n1: float, k2: float, n2: float, *, level: float = CONFIDENCE_LEVEL
) -> tuple[float, float]:
    """Interval of the difference of two independent rates, from their Wilson intervals.

    Newcombe 1998, method 10 (doi:10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I).

    Args:
        k1: Successes of the first, 0 to ``n1``.
        n1: Trials of the first, above 0.
        k2: Successes of the second.
        n2: Trials of the second.
        level: Confidence level.

    Returns:
        Lower and upper end of the first rate minus the second, within -1 and 1.

    Raises:
        ValueError: If counts or the level are out of range.

    When not to use it: for rates of the same items (``paired_test``).
    """
    (low1, high1), (low2, high2) = wilson(k1, n1, level=level), wilson(k2, n2, level=level)
    p1, p2 = k1 / n1, k2 / n2
    low = p1 - p2 - sqrt((p1 - low1) ** 2 + (high2 - p2) ** 2)
    high = p1 - p2 + sqrt((high1 - p1) ** 2 + (p2 - low2) ** 2)
    return max(-1.0, low), min(1.0, high)


def detectable_difference(
    error: float, *, level: float = CONFIDENCE_LEVEL, power: float = POWER
) -> float:
    """The smallest true difference that a design of this precision detects with this power.

    It is a property of the design. The power at the observed difference would add nothing to the
    p-value (Hoenig & Heisey 2001, doi:10.1198/000313001300339897).

    Args:
        error: Standard error of the difference, at least 0.
        level: One minus the two-sided size of the test.
        power: Chance of detecting it, above 0.5 and below 1.

    Raises:
        ValueError: If an argument is out of range.
    """
    if not error >= 0 or not 0 < level < 1 or not 0.5 < power < 1:
        expected = "error >= 0, 0 < level < 1 and 0.5 < power < 1"
        raise ValueError(f"detectable: expected {expected}, got {error=} {level=} {power=}")
    normal = NormalDist()
    return (normal.inv_cdf(0.5 + level / 2) + normal.inv_cdf(power)) * error


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """A difference of two groups.

    Attributes:
        estimate: The difference with its interval.
        detectable: The smallest true difference detected with a power of 0.8; None if unknown.
    """

    estimate: Estimate
    detectable: float | None = None


def independent_difference(first: Estimate, second: Estimate) -> Contrast:
    """Difference of two figures that were measured on different, unrelated items.

    Computed from the ends of the two intervals (MOVER: Zou & Donner 2008, doi:10.1002/sim.3095);
    for two rates with Wilson's interval it is Newcombe's hybrid score interval of 1998.

    Args:
        first: With an interval.
        second: With an interval, at the same level.

    Returns:
        The difference; without value or interval, and with the reason, if one of the two has none.

    When not to use it: where items share cases across the two: see ``part_difference``.
    """
    if first.value is None or second.value is None:
        reason = first.note if first.value is None else second.note
        return Contrast(estimate=nothing(first.level, note=reason))
    estimate = Estimate(
        value=first.value - second.value,
        level=first.level,
        n_items=first.n_items + second.n_items,
        n_clusters=first.n_clusters + second.n_clusters,
        note=first.note or second.note,
    )
    if None in {first.low, first.high, second.low, second.high}:
        return Contrast(estimate=estimate)
    return _mover(estimate, first, second, 0.0)


def part_difference(
    values: Array,
    first: Ids,
    second: Ids,
    sample: Sample,
    *,
    bounds: Bounds = (0.0, 1.0),
    level: float = CONFIDENCE_LEVEL,
) -> Contrast:
    """Difference of the means of two parts of the items, which may share cases.

    Computed from the ends of the two parts' intervals as in ``independent_difference``, with the
    correlation of the two means through the cases they share (Zou 2007,
    doi:10.1037/1082-989X.12.4.399). The intervals are those of ``bounded``, or of ``paired_test``
    where values may be below 0. In simulations 95 % intervals covered 93.9 % or more.

    Args:
        values: Shape (n,), within the bounds.
        first: Shape (n,), bool.
        second: Shape (n,), bool, disjoint from ``first``.
        sample: Sampling design of the items.
        bounds: Least and greatest possible value of an item.
        level: Confidence level.

    When not to use it: with fewer than about ten units in either part.
    """

    def interval(part: Ids) -> Estimate:
        here = replace(sample.take(part), resampling=None)
        if bounds[0] < 0:
            return paired_test(values[part], here, bounds=bounds, level=level).estimate
        return bounded(values[part], here, bounds=bounds, level=level)

    left, right = interval(first), interval(second)
    if left.value is None or right.value is None:
        return Contrast(estimate=nothing(level, note="one side has no items"))
    rows = first | second
    here, n_items = sample.take(rows), left.n_items + right.n_items
    n_units = len(here.units(int(np.count_nonzero(rows)))[1])
    estimate = Estimate(
        value=left.value - right.value,
        level=level,
        n_items=n_items,
        n_clusters=n_units,
        note=cluster_note(n_items, n_units),
    )
    if left.low is None or right.low is None:
        note = f"one side has no interval: {(left if left.low is None else right).note}"
        return Contrast(estimate=replace(estimate, note=note))
    contrast = _mover(estimate, left, right, _correlation(values[rows], first[rows], here))
    columns = np.stack([values * first, first, values * second, second], axis=1)[rows]
    return replace(
        contrast, estimate=resampled(contrast.estimate, columns, here, difference_of_ratios)
    )


def _correlation(values: Array, first: Ids, sample: Sample) -> float:
    """Correlation of the means of two parts, by each unit's share; 0 if one has no spread."""
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
    """The interval of a difference of two estimates with intervals."""

    def across(a: float, b: float) -> float:
        return sqrt(max(0.0, a * a - 2 * correlation * a * b + b * b))

    a, b = _reach(first), _reach(second)
    value = estimate.value or 0.0
    low, high = value - across(a[0], b[1]), value + across(a[1], b[0])
    error = (high - low) / 2 / NormalDist().inv_cdf(0.5 + estimate.level / 2)
    return Contrast(
        estimate=replace(estimate, low=low, high=high, method="mover"),
        detectable=detectable_difference(error, level=estimate.level),
    )


def _reach(estimate: Estimate) -> tuple[float, float]:
    """Distances from the value down and up to the ends of its interval; for rates, of Wilson's."""
    value, low, high = estimate.value or 0.0, estimate.low or 0.0, estimate.high or 0.0
    if estimate.method == "wilson-modified":
        n = estimate.n_items
        low, high = wilson(min(n, value * n), n, level=estimate.level)
    return value - low, high - value
