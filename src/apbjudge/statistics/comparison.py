"""Differences: are two judges, models or rubrics different, and what could have been seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import NormalDist
from typing import Literal, get_args

import numpy as np

from .intervals import CONFIDENCE_LEVEL, Array, Estimate, nothing, wilson
from .moments import Moments, ratio_moments
from .sample import Sample
from .shares import without_interval
from .student import t_quantile, two_sided

POWER = 0.8
Correction = Literal["holm", "bh", "by"]
"""How p-values are adjusted; see ``adjust``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McNemar:
    """McNemar's test of two rates measured on the same items.

    Attributes:
        b: Items where only the first was right.
        c: Items where only the second was right.
        p_exact: Two-sided p-value of the exact conditional test; too large on average.
        p_mid: Its mid-p version: the better choice, its size hardly ever exceeds the level.
    """

    b: int
    c: int
    p_exact: float
    p_mid: float


def mcnemar(b: int, c: int) -> McNemar:
    """Whether two rates differ, from the items where the two disagree.

    Exact conditional (binomial) and mid-p version; Fagerland, Lydersen & Laake 2013
    (doi:10.1186/1471-2288-13-91) compare them and recommend the mid-p. Items are independent.

    Args:
        b: Items where only the first was right, at least 0.
        c: Items where only the second was right.

    Returns:
        Both p-values; 1.0 when no item tells the two apart.

    Raises:
        ValueError: If a count is below 0.

    When not to use it: where items share cases (``paired_test`` with clusters), or for the size
    of the difference, of which a p-value says nothing.
    """
    if b < 0 or c < 0:
        raise ValueError(f"mcnemar: expected counts of at least 0, got {b=} {c=}")
    n, least = b + c, min(b, c)
    if n == 0:
        return McNemar(b=b, c=c, p_exact=1.0, p_mid=1.0)
    below = _tail(least - 1, n)
    upto = _tail(least, n)
    return McNemar(b=b, c=c, p_exact=min(1.0, 2 * upto), p_mid=min(1.0, upto + below))


def _tail(k: int, n: int) -> float:
    """Chance of at most k heads in n tosses of a fair coin."""
    from scipy.special import bdtr

    return float(bdtr(k, n, 0.5)) if k >= 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedTest:
    """A mean difference on the same items, and whether it can be told from 0.

    Attributes:
        estimate: The mean difference with its interval.
        p_value: Two-sided; below 1 - level exactly when the interval leaves out 0 (unless the
            bounds cut it). None when there is no interval.
        method: ``t-bonett-price``, or ``none``.
        detectable: The smallest true difference that this many items find with a power of 0.8.
    """

    estimate: Estimate
    p_value: float | None
    method: str
    detectable: float | None


def paired_test(
    differences: Array,
    sample: Sample,
    *,
    bounds: tuple[float, float] = (-1.0, 1.0),
    level: float = CONFIDENCE_LEVEL,
) -> PairedTest:
    """Mean of paired differences, its interval and a test of 0, by cluster.

    Student's t with the cluster-robust variance, after one unit more has been counted in each
    direction: Bonett & Price 2012 (doi:10.3102/1076998611411915) for 0/1 outcomes, here for
    clusters, weights and grades too. In simulations (30 to 720 items, 2 to 70 % discordant) 95 %
    intervals covered 93.6 % or more, and close to all where fewer than about 3 discordant items
    are expected; ``bounded``'s interval, without the two units, covered down to 89 %. A unit
    counts as much as the observed differences do (root mean square of those that are not 0), or
    as much as possible where all are 0.

    Args:
        differences: Shape (n,): first minus second, within the bounds.
        sample: How the items were drawn; clusters are what is independent.
        bounds: Least and greatest possible difference.
        level: Confidence level.

    Returns:
        The estimate (the observed mean, the interval around the mean with the two units), p-value
        and detectable difference. No interval where there is one unit, or one a stratum.

    Raises:
        ValueError: If a difference is missing or out of bounds.

    When not to use it: with fewer than about 10 clusters, where the t distribution is a rough
    guide; for differences of measures that are no means (kappa, F1): resample those.
    """
    if not bool(np.all((differences >= bounds[0]) & (differences <= bounds[1]))):
        raise ValueError(f"differences: expected numbers from {bounds[0]} to {bounds[1]}")
    moments = ratio_moments(differences, np.ones(len(differences)), sample)
    if moments is None:
        return PairedTest(estimate=nothing(level), p_value=None, method="none", detectable=None)
    estimate = without_interval(moments, level)
    if moments.df == 0:
        estimate = replace(estimate, note="too few units to show a spread")
        return PairedTest(estimate=estimate, p_value=None, method="none", detectable=None)
    size = _typical(differences, max(abs(bounds[0]), abs(bounds[1])))
    centre, error = _with_two_more(moments, _effective_units(sample, len(differences)), size)
    low, high = _student(centre, error, moments.df, level)
    estimate = replace(
        estimate,
        low=min(moments.value, max(bounds[0], low)),
        high=max(moments.value, min(bounds[1], high)),
        method="t-bonett-price",
    )
    return PairedTest(
        estimate=estimate,
        p_value=two_sided(centre / error, moments.df),
        method="t-bonett-price",
        detectable=detectable_difference(error, level=level),
    )


def _typical(differences: Array, greatest: float) -> float:
    some = differences[differences != 0]
    return float(np.sqrt(np.mean(some * some))) if len(some) else greatest


def _effective_units(sample: Sample, n: int) -> float:
    """Kish's effective number of units: as many equal ones would be worth as much."""
    unit, _ = sample.units(n)
    sums = np.bincount(unit, weights=sample.weights)
    return float(sums.sum() ** 2 / (sums**2).sum())


def _with_two_more(moments: Moments, n: float, size: float) -> tuple[float, float]:
    """Mean and its standard error once +size and -size have been counted as units of their own."""
    keep = n / (n + 2)
    centre = keep * moments.value
    square = moments.variance * (n - 1) + moments.value**2
    variance = (keep * square - centre**2 + 2 * size**2 / (n + 2)) / (n + 2)
    return centre, sqrt(variance)


def _student(centre: float, error: float, df: int, level: float) -> tuple[float, float]:
    half = t_quantile(0.5 + level / 2, df) * error
    return centre - half, centre + half


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


def adjust(p_values: Sequence[float | None], *, method: Correction) -> list[float | None]:
    """P-values adjusted for there being several.

    ``holm`` (Holm 1979) keeps the chance of any false finding at the level, whatever the
    dependence: for a family stated beforehand. ``bh`` (Benjamini & Hochberg 1995) keeps the
    expected share of false ones among the findings: for exploration, with independent or
    positively dependent tests. ``by`` (Benjamini & Yekutieli 2001,
    doi:10.1214/aos/1013699998) does so for any dependence.

    Args:
        p_values: Between 0 and 1; None where there was no test, which then does not count.
        method: Which of them.

    Returns:
        Adjusted p-values in the order given, None where None was given.

    Raises:
        ValueError: If a p-value is out of range or the method unknown.
    """
    tested = [p for p in p_values if p is not None]
    if method not in get_args(Correction) or not all(0 <= p <= 1 for p in tested):
        raise ValueError(f"adjust: expected p-values from 0 to 1 by holm, bh or by, got {method!r}")
    if not tested:
        return [None] * len(p_values)
    order = np.argsort(tested, kind="stable")
    adjusted = np.empty(len(tested))
    adjusted[order] = np.minimum(1.0, _stepwise(np.asarray(tested)[order], method))
    found = iter(adjusted.tolist())
    return [None if p is None else next(found) for p in p_values]


def _stepwise(ascending: Array, method: Correction) -> Array:
    """Adjusted p-values in the order of the plain ones, before they are cut at 1."""
    rank = np.arange(1, len(ascending) + 1)
    if method == "holm":
        return np.maximum.accumulate(ascending * rank[::-1])
    share = rank / len(ascending)
    if method == "by":
        share /= (1 / rank).sum()
    return np.minimum.accumulate((ascending / share)[::-1])[::-1]


def detectable_difference(
    error: float, *, level: float = CONFIDENCE_LEVEL, power: float = POWER
) -> float:
    """The smallest true difference that a design of this precision finds with this power.

    It speaks of the design: "a difference of 4 points would most likely have been found". It is
    no power of the difference that was observed, which adds nothing to the p-value (Hoenig &
    Heisey 2001, doi:10.1198/000313001300339897).

    Args:
        error: Standard error of the difference, at least 0.
        level: One minus the two-sided size of the test.
        power: Chance to find it, above 0.5 and below 1.

    Raises:
        ValueError: If an argument is out of range.
    """
    if not error >= 0 or not 0 < level < 1 or not 0.5 < power < 1:
        expected = "error >= 0, 0 < level < 1 and 0.5 < power < 1"
        raise ValueError(f"detectable: expected {expected}, got {error=} {level=} {power=}")
    normal = NormalDist()
    return (normal.inv_cdf(0.5 + level / 2) + normal.inv_cdf(power)) * error
