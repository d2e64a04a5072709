"""Intervals of rates and bounded means, for any sampling design.

Wilson's score interval keeps its coverage where Wald's fails (small samples, rare outcomes). Where
rows share clusters, have weights or lie between 0 and 1, it uses the number of rows n at which p(1
- p) / n would be the variance, and Student's t, whose degrees of freedom fall if a few rows or
clusters make up most of the variance.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from statistics import NormalDist

import numpy as np

from .bootstrap import RATIO, resampled
from .estimates import CONFIDENCE_LEVEL, Array, Estimate, Ids, cluster_note, nothing, t_quantile
from .sample import Moments, Sample, effective_df, ratio_moments

Bounds = tuple[float, float]
"""Least and greatest possible value."""
_NEAR_THE_END = 3


def wilson(k: float, n: float, *, level: float = CONFIDENCE_LEVEL) -> tuple[float, float]:
    """Wilson score interval of a rate (Wilson 1927, doi:10.1080/01621459.1927.10502953).

    Args:
        k: Successes, 0 to ``n``.
        n: Independent trials, above 0.
        level: Confidence level, between 0 and 1.

    Returns:
        Lower and upper end; always inside [0, 1], never of zero width.

    Raises:
        ValueError: If the counts or the level are out of range.
    """
    if not n > 0 or not 0 <= k <= n or not 0 < level < 1:
        expected = "0 <= k <= n, n > 0 and 0 < level < 1"
        raise ValueError(f"wilson: expected {expected}, got {k=} {n=} {level=}")
    centre, half = _centre_and_half(k / n, n, NormalDist().inv_cdf(0.5 + level / 2))
    low = 0.0 if k == 0 else max(0.0, centre - half)
    return low, 1.0 if k == n else min(1.0, centre + half)


def _centre_and_half(p: float, n: float, quantile: float) -> tuple[float, float]:
    square = quantile * quantile
    half = quantile / (1 + square / n) * sqrt(p * (1 - p) / n + square / (4 * n * n))
    return float((p + square / (2 * n)) / (1 + square / n)), float(half)


def modified_wilson(k: int, n: int, *, level: float = CONFIDENCE_LEVEL) -> tuple[float, float]:
    """Wilson's interval with its ends next to 0 and 1 moved outwards.

    Wilson's interval covers as little as 84 % at rates just below those that one to three successes
    suggest. Brown, Cai & DasGupta 2001 (section 4.1, doi:10.1214/ss/1009213286) use the one-sided
    limit of a Poisson mean there; coverage is then 91.7 % or more for every rate and number of
    trials.

    Args:
        k: Successes, 0 to ``n``.
        n: Independent trials, above 0.
        level: Confidence level, between 0 and 1.

    Returns:
        Lower and upper end; those of ``wilson`` with more than three successes and three failures.

    Raises:
        ValueError: If the counts or the level are out of range.
    """
    low, high = wilson(k, n, level=level)
    near = range(1, _NEAR_THE_END + 1)
    if k not in near and n - k not in near:
        return low, high  # without scipy, which takes a fifth of a small run's start

    from scipy.special import gammaincinv

    if k in near:
        low = min(low, float(gammaincinv(k, 1 - level)) / n)
    if n - k in near:
        high = max(high, 1 - float(gammaincinv(n - k, 1 - level)) / n)
    return low, high


def score_interval(
    value: float,
    variance: float,
    df: float,
    *,
    level: float = CONFIDENCE_LEVEL,
    bounds: Bounds = (0.0, 1.0),
) -> Bounds:
    """Wilson's interval with the number of rows that would give this variance.

    For clusters see Saha, Miller & Wang 2016 (doi:10.1515/ijb-2015-0024); Student's t instead of
    the normal quantile as in Korn & Graubard 1998 (Survey Methodology 24).
    """
    least, width = bounds[0], bounds[1] - bounds[0]
    p = min(1.0, max(0.0, (value - least) / width))
    n = max(p * (1 - p), 1e-12) * width * width / variance
    centre, half = _centre_and_half(p, n, t_quantile(0.5 + level / 2, df))
    low, high = max(0.0, min(p, centre - half)), min(1.0, max(p, centre + half))
    return least + width * low, least + width * high


def flat_interval(value: float, n: float, *, level: float, bounds: Bounds) -> Bounds:
    """Interval of a mean if all n independent rows have this value.

    Rows of other values were not seen, so their share is at most the upper end of Wilson's interval
    for 0 in n; the mean is farthest off if all of these lie on one of the bounds.
    """
    unseen = wilson(0, n, level=level)[1]
    return value - unseen * (value - bounds[0]), value + unseen * (bounds[1] - value)


def widest_interval(value: float, n: float, *, level: float, bounds: Bounds) -> Bounds:
    """Wilson's interval as if all n rows were on the two bounds, with the greatest spread."""
    least, width = bounds[0], bounds[1] - bounds[0]
    p = min(1.0, max(0.0, (value - least) / width))
    low, high = wilson(p * n, n, level=level)
    return least + width * low, least + width * high


def share(
    numerators: Ids, denominators: Ids, sample: Sample, *, level: float = CONFIDENCE_LEVEL
) -> Estimate:
    """A rate among some of the rows, or a ratio of sums that lies between 0 and 1.

    Args:
        numerators: Shape (n,), between 0 and the denominator.
        denominators: Shape (n,), 0 where the row is not counted.
        sample: Sampling design of the rows.
        level: Confidence level.

    Returns:
        The estimate: method ``wilson`` for independent rows of 0 and 1, ``wilson-effective`` for
        clusters, weights, strata and parts of rows; if rows have no spread, an interval from
        Wilson's over the units for the share of values that none of them has (``wilson-clusters``).
        One unit has no interval.

    When not to use it: for hand-picked rows, whose rate describes these rows only.
    """
    is_bool = numerators.dtype == denominators.dtype == np.bool_
    if is_bool and sample.is_plain and sample.resampling is None:
        n = int(np.count_nonzero(denominators))
        return counted(int(np.count_nonzero(numerators)), n, level=level)
    above, below = np.asarray(numerators, dtype=float), np.asarray(denominators, dtype=float)
    return bounded_ratio(above, below, sample, level=level)


def share_of(hits: Ids, sample: Sample, *, level: float = CONFIDENCE_LEVEL) -> Estimate:
    """The share of rows that are True; see ``share``.

    Args:
        hits: Shape (n,), bool.
        sample: Sampling design of the rows.
        level: Confidence level.
    """
    return share(hits, np.ones(len(hits), dtype=bool), sample, level=level)


def bounded(
    values: Array, sample: Sample, *, bounds: Bounds = (0.0, 1.0), level: float = CONFIDENCE_LEVEL
) -> Estimate:
    """Mean of values within known bounds, such as grades or their differences.

    Args:
        values: Shape (n,).
        sample: Sampling design of the rows.
        bounds: Least and greatest possible value of a row.
        level: Confidence level.

    Returns:
        The estimate; see ``share``.

    When not to use it: with bounds far from all values and fewer than about 30 very skewed rows,
    where the interval, close to that of Student's t, is too narrow.
    """
    return bounded_ratio(values, np.ones(len(values)), sample, bounds=bounds, level=level)


def bounded_ratio(
    numerators: Array,
    denominators: Array,
    sample: Sample,
    *,
    bounds: Bounds = (0.0, 1.0),
    level: float = CONFIDENCE_LEVEL,
) -> Estimate:
    """A ratio of sums over rows whose own ratios lie within bounds; see ``share``."""
    given, all_rows = (numerators, denominators), sample
    rows = denominators > 0
    if not rows.all():
        numerators, denominators, sample = numerators[rows], denominators[rows], sample.take(rows)
    if sample.is_plain and _is_yes_or_no(numerators, denominators, bounds):
        estimate = counted(int(numerators.sum()), len(numerators), level=level)
    else:
        moments = ratio_moments(numerators, denominators, sample)
        estimate = _with_interval(moments, bounds, level)
    if all_rows.resampling is None:
        return estimate
    return resampled(estimate, np.stack(given, axis=1), all_rows, RATIO)


def counted_ratio(
    counts: Array,
    above: Array,
    below: Array,
    *,
    bounds: Bounds = (0.0, 1.0),
    level: float = CONFIDENCE_LEVEL,
) -> Estimate:
    """A ratio of sums as in ``share``, from counts of independent rows of k kinds.

    Args:
        counts: Shape (k,): rows of each kind.
        above: Shape (k,): contribution of a row of the kind to the numerator.
        below: Shape (k,): contribution to the denominator, not negative.
        bounds: Least and greatest possible ratio.
        level: Confidence level.
    """
    included = (counts > 0) & (below > 0)
    counts, above, below = counts[included], above[included], below[included]
    n = int(counts.sum())
    if not n:
        return nothing(level)
    if _is_yes_or_no(above, below, bounds):
        return counted(int((counts * above).sum()), n, level=level)
    total = float((counts * below).sum())
    value = float((counts * above).sum()) / total
    residuals = (above - value * below) / total
    squares, fourths = float((counts * residuals**2).sum()), float((counts * residuals**4).sum())
    is_flat = squares * n * n <= 1e-18
    moments = Moments(
        value=value,
        variance=0.0 if is_flat else squares * n / max(1, n - 1),
        n_items=n,
        n_clusters=n,
        df=n - 1,
        effective_df=effective_df([n], [squares], [fourths]),
        n_effective=n,
        is_flat=is_flat,
    )
    return _with_interval(moments, bounds, level)


def _is_yes_or_no(above: Array, below: Array, bounds: Bounds) -> bool:
    is_rate = bounds == (0.0, 1.0) and bool(np.all(below == 1))
    return is_rate and bool(np.all((above == 0) | (above == 1)))


def counted(k: int, n: int, *, level: float = CONFIDENCE_LEVEL) -> Estimate:
    """A rate of independent rows from its counts, with Wilson's modified interval.

    The method is ``wilson-modified`` if one to three successes or failures move an end.

    Args:
        k: Successes, 0 to ``n``.
        n: Rows, at least 0.
        level: Confidence level.
    """
    if n == 0:
        return nothing(level)
    low, high = modified_wilson(k, n, level=level)
    return Estimate(
        value=k / n,
        low=low,
        high=high,
        level=level,
        method="wilson" if (low, high) == wilson(k, n, level=level) else "wilson-modified",
        n_items=n,
        n_clusters=n,
    )


def _with_interval(moments: Moments | None, bounds: Bounds, level: float) -> Estimate:
    if moments is None:
        return nothing(level)
    estimate, value = without_interval(moments, level), moments.value
    if moments.n_clusters == 1:
        return replace(estimate, note="one cluster shows no spread")
    if moments.variance == 0 or moments.df == 0:
        interval = flat_interval if moments.is_flat else widest_interval
        low, high = interval(value, moments.n_effective, level=level, bounds=bounds)
        return replace(estimate, low=low, high=high, method="wilson-clusters")
    variance, df = moments.variance, moments.effective_df
    low, high = score_interval(value, variance, df, level=level, bounds=bounds)
    return replace(estimate, low=low, high=high, method="wilson-effective")


def ratio_of_sums(
    numerators: Array,
    denominators: Array,
    sample: Sample,
    *,
    bounds: Bounds | None = None,
    level: float = CONFIDENCE_LEVEL,
) -> Estimate:
    """A ratio of two totals, such as searches per call, where whole rows were sampled.

    The interval comes from the spread between rows and never treats the counts within a row as
    independent (Cochran 1977, Sampling Techniques, section 6.3).

    Args:
        numerators: Shape (n,).
        denominators: Shape (n,), not negative; ones for a mean.
        sample: Sampling design of the rows.
        bounds: Least and greatest possible ratio of a row; None if it has no upper limit.
        level: Confidence level.

    Returns:
        The estimate: within bounds as in ``share``, else by Student's t with the effective degrees
        of freedom (``t-ratio``), without interval if all rows have the same ratio.

    When not to use it: without bounds and with fewer than about 15 rows.
    """
    if bounds is not None:
        return bounded_ratio(numerators, denominators, sample, bounds=bounds, level=level)
    moments = ratio_moments(numerators, denominators, sample)
    if moments is None:
        return nothing(level)
    estimate = without_interval(moments, level)
    if moments.n_clusters == 1:
        return replace(estimate, note="one cluster shows no spread")
    if sample.resampling is not None:
        return resampled(estimate, np.stack([numerators, denominators], axis=1), sample, RATIO)
    if moments.variance == 0 or moments.df == 0:
        return replace(estimate, method="no-spread")
    half = t_quantile(0.5 + level / 2, moments.effective_df) * sqrt(moments.variance)
    low, high = moments.value - half, moments.value + half
    if numerators.min() >= 0:  # counts are never below 0
        low = max(0.0, low)
    return replace(estimate, low=low, high=high, method="t-ratio")


def without_interval(moments: Moments, level: float) -> Estimate:
    """The value alone, with a note if there are few clusters."""
    return Estimate(
        value=moments.value,
        level=level,
        n_items=moments.n_items,
        n_clusters=moments.n_clusters,
        note=cluster_note(moments.n_items, moments.n_clusters),
    )
