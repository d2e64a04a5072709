"""Values and variances of ratios of sums, however the rows were drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .intervals import Array, Ids
from .sample import Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """A ratio of weighted sums and how far it may be off.

    Attributes:
        value: Sum of numerators over sum of denominators.
        variance: Its linearised (sandwich) variance, never below that of independent rows; 0
            where the rows show no spread at all.
        n_items: Rows whose denominator is above 0.
        n_clusters: Units among them.
        df: Degrees of freedom: units less strata, at least 0.
        effective_df: Those of the variance as it turned out (``effective_df``), at most ``df``.
    """

    value: float
    variance: float
    n_items: int
    n_clusters: int
    df: int
    effective_df: float


def ratio_moments(numerators: Array, denominators: Array, sample: Sample) -> Moments | None:
    """Value and variance of a ratio of sums, by units within strata.

    The usual linearised variance of a ratio under sampling of whole clusters (Cochran 1977,
    Sampling Techniques, sections 6.3 and 11): each unit's residual, squared and added up within
    strata, with the factor C / (C - 1). The sampling is taken to be with replacement: a sample
    that is a large part of its population is described too carefully, never too boldly.

    Args:
        numerators: Shape (n,).
        denominators: Shape (n,), not negative.
        sample: How the rows were drawn.

    Returns:
        The moments; None when the denominators add up to nothing.
    """
    rows = denominators > 0
    if not rows.all():
        numerators, denominators, sample = numerators[rows], denominators[rows], sample.take(rows)
    n = len(numerators)
    weights = sample.weights
    above = numerators if weights is None else numerators * weights
    below = denominators if weights is None else denominators * weights
    total = float(below.sum())
    if not n or not total > 0:
        return None
    value = float(above.sum()) / total
    residuals = (above - value * below) / total
    unit, strata = sample.units(n)
    n_units, n_strata = len(strata), int(np.count_nonzero(np.bincount(strata)))
    by_unit: Array = np.bincount(unit, residuals, n_units).astype(float)
    larger = _powers(by_unit, strata)
    variance = _sum_of(larger)
    if n_units != n:
        apart = _powers(residuals, strata[unit])
        if (by_row := _sum_of(apart)) > variance:
            larger, variance = apart, by_row
    df = max(0, n_units - n_strata)
    return Moments(
        value=value,
        variance=variance,
        n_items=n,
        n_clusters=n_units,
        df=df,
        effective_df=min(df, effective_df(*larger)),
    )


_Powers = tuple[Ids, Array, Array]


def _sum_of(powers: _Powers) -> float:
    sizes, squares, _ = powers
    spread = float((squares * sizes / np.maximum(sizes - 1, 1)).sum())
    return spread if spread > 1e-24 else 0.0


def _powers(residuals: Array, strata: Ids) -> _Powers:
    """By stratum: its units, and sums of second and fourth powers of the distance from its mean."""
    sizes = np.bincount(strata)
    means = np.bincount(strata, weights=residuals) / np.maximum(sizes, 1)
    means[sizes == 1] = 0.0
    squares = (residuals - means[strata]) ** 2
    second: Array = np.bincount(strata, weights=squares).astype(float)
    fourth: Array = np.bincount(strata, weights=squares**2).astype(float)
    return sizes, second, fourth


def effective_df(sizes: Ids, squares: Array, fourths: Array) -> float:
    """Degrees of freedom of a variance, from how unevenly units contribute to it.

    By Satterthwaite's rule (1946, doi:10.2307/3002019): those of the chi-squared distribution
    with the variance's own relative variance, (kurtosis - 1) / C in a stratum of C units. Many
    units of equal size give C - 1, a single one that makes up nearly everything gives about 2.

    Args:
        sizes: Shape (n_strata,): units of each stratum.
        squares: Shape (n_strata,): sums of squared distances from the stratum's mean.
        fourths: Shape (n_strata,): sums of their fourth powers.

    Returns:
        At least 1, at most units less strata (or 1); 0 where there is no spread.
    """
    if len(sizes) == 1:
        return _of_one_stratum(int(sizes[0]), float(squares[0]), float(fourths[0]))
    held = squares > 0
    n, squares, fourths = sizes[held], squares[held], fourths[held]
    if not len(n):
        return 0.0
    excess = np.maximum(n * fourths / squares**2 - 1, 1e-9)
    own = np.clip(2 * n / excess, 1.0, np.maximum(n - 1, 1))
    parts = squares * n / np.maximum(n - 1, 1)
    found = float(parts.sum()) ** 2 / float((parts**2 / own).sum())
    return min(found, max(1.0, float(sizes.sum() - np.count_nonzero(sizes))))


def _of_one_stratum(n: int, square: float, fourth: float) -> float:
    """The same without arrays, which are most of the work where there is one stratum."""
    if not square > 0:
        return 0.0
    excess = max(n * fourth / (square * square) - 1, 1e-9)
    own = min(max(2 * n / excess, 1.0), max(n - 1, 1))
    part = square * n / max(n - 1, 1)
    return min(part**2 / (part * part / own), max(1.0, float(n - 1)))
