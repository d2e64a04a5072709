"""Values and variances of ratios of sums, however the rows were drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .estimates import Array, Ids
from .sample import Sample, Strata


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How far a sum of what rows contribute to an estimate may be off.

    Attributes:
        variance: Never below that of independent rows; 0 where the rows show no spread at all.
        n_clusters: Units among the rows.
        df: Degrees of freedom: units less strata, at least 0.
        effective_df: Those of the variance as it turned out (``effective_df``).
    """

    variance: float
    n_clusters: int
    df: int
    effective_df: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments(Spread):
    """A ratio of weighted sums and how far it may be off.

    Attributes:
        value: Sum of numerators over sum of denominators.
        n_items: Rows whose denominator is above 0.
        n_effective: Units; where rows have unequal weights, as many of the heaviest as would be
            worth as much, since another outcome may hide among those.
    """

    value: float
    n_items: int
    n_effective: float


def ratio_moments(numerators: Array, denominators: Array, sample: Sample) -> Moments | None:
    """Value and variance of a ratio of sums, by units within strata.

    The usual linearised variance of a ratio under sampling of whole clusters (Cochran 1977,
    Sampling Techniques, sections 6.3 and 11); see ``spread``.

    Args:
        numerators: Shape (n,).
        denominators: Shape (n,), not negative; 0 where a row is not counted.
        sample: How the rows were drawn.

    Returns:
        The moments; None when the denominators add up to nothing.
    """
    rows = denominators > 0
    if not rows.all():
        numerators, denominators, sample = numerators[rows], denominators[rows], sample.take(rows)
    weights = sample.weights
    above = numerators if weights is None else numerators * weights
    below = denominators if weights is None else denominators * weights
    total = float(below.sum())
    if not len(numerators) or not total > 0:
        return None
    value = float(above.sum()) / total
    contributions = (above - value * below) / total
    by_rows = spread(contributions, sample)
    unseen = _unseen(contributions, sample, float(denominators.max()) / total)
    return Moments(
        value=value,
        variance=by_rows.variance + (unseen if by_rows.variance else 0.0),
        n_items=len(numerators),
        n_clusters=by_rows.n_clusters,
        df=by_rows.df,
        effective_df=by_rows.effective_df,
        n_effective=by_rows.n_clusters * sample.evenness,
    )


def _unseen(contributions: Array, sample: Sample, reach: float) -> float:
    """Half a row more, of another outcome, in the strata whose rows all contribute the same.

    That the few rows drawn from a stratum show no other outcome does not say that it has none;
    where its rows stand for many, this is most of what is not known.

    Args:
        contributions: Shape (n,).
        sample: How the rows were drawn.
        reach: By how much a row of weight 1 may contribute more or less.
    """
    weights, design = sample.stratum_weights, sample.design
    if weights is None or design is None or sample.strata is None:
        return 0.0
    size = len(weights)
    in_part = np.bincount(sample.strata, minlength=size)
    least, greatest = np.zeros(size), np.zeros(size)
    np.minimum.at(least, sample.strata, contributions)
    np.maximum.at(greatest, sample.strata, contributions)
    full = in_part == design.n_drawn
    same = np.bincount(sample.strata, contributions, size) / np.maximum(in_part, 1)
    flat = np.where(full, np.maximum(greatest - same, same - least), greatest - least) < 1e-12
    flat &= design.n_drawn > 0
    rows = int(design.n_drawn[flat].sum())
    if not rows:
        return 0.0
    mean = float((weights * design.n_drawn)[flat].sum()) / rows
    return 0.5 * (mean * reach) ** 2


def spread(contributions: Array, sample: Sample) -> Spread:
    """Variance of a sum of what rows contribute, by units within strata.

    Contributions are squared by unit and added up within strata, with the factor C / (C - 1). The
    sampling is taken to be with replacement: a sample that is a large part of its population is
    described too carefully, never too boldly.

    Rows of a stratum that the sample's part leaves out count with a contribution of 0, as the
    estimation of a part of a population needs it (Cochran 1977, section 2.13): the number of rows
    that belong to the part is as random as the rest. Where the shares of strata were counted in a
    sample, their own variance is added. Clusters that reach across strata are taken as a whole.

    Args:
        contributions: Shape (n,), what each row adds, its weight included.
        sample: How the rows were drawn.
    """
    if sample.strata is not None and sample.design is not None:
        return _within_strata(contributions, sample.strata, sample.design, sample.clusters)
    n = len(contributions)
    unit, strata = sample.units(n)
    larger = _powers(np.bincount(unit, contributions, len(strata)).astype(float), strata)
    variance = _sum_of(larger)
    if len(strata) != n:
        apart = _powers(contributions, strata[unit])
        if (by_row := _sum_of(apart)) > variance:
            larger, variance = apart, by_row
    df = max(0, len(strata) - 1)
    return Spread(
        variance=variance,
        n_clusters=len(strata),
        df=df,
        effective_df=min(df, effective_df(*larger)),
    )


def _within_strata(
    contributions: Array, strata: Ids, design: Strata, clusters: Ids | None
) -> Spread:
    size, sizes = len(design.n_drawn), design.n_drawn
    left_out = sizes - np.bincount(strata, minlength=size)
    sums: Array = np.bincount(strata, contributions, size).astype(float)
    means = np.where(sizes > 1, sums / np.maximum(sizes, 1), 0.0)
    distances = contributions - means[strata]
    second: Array = np.bincount(strata, distances**2, size).astype(float)
    fourth: Array = np.bincount(strata, distances**4, size).astype(float)
    second += left_out * means**2
    fourth += left_out * means**4
    larger: _Powers = (sizes, second, fourth)
    within = variance = _sum_of(larger)
    n_units, n_strata = len(contributions), int(np.count_nonzero(np.bincount(strata)))
    slopes = np.zeros(size)
    if design.shares is not None and within > 0:
        slopes[design.shares > 0] = (sums / np.maximum(design.shares, 1e-300))[design.shares > 0]
        variance += design.share_variance(slopes)
    own = effective_df(*larger) * (variance / within) ** 2 if within else 0.0
    if clusters is not None:
        n_units = int(np.count_nonzero(np.bincount(clusters)))
        scale = np.sqrt(sizes / np.maximum(sizes - 1, 1))
        by_cluster = np.bincount(clusters, distances * scale[strata])
        if design.by_cluster is not None and within > 0:
            by_cluster = np.pad(by_cluster, (0, len(design.by_cluster) - len(by_cluster)))
            by_cluster = by_cluster + design.by_cluster @ slopes
        powers = [float((by_cluster**k).sum()) for k in (2, 4)]
        together: _Powers = (np.array([n_units]), np.array(powers[:1]), np.array(powers[1:]))
        if (whole := _sum_of(together)) > variance:
            variance, own = whole, effective_df(*together)
    df = max(0, n_units - n_strata)
    return Spread(variance=variance, n_clusters=n_units, df=df, effective_df=own)


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
    varies = squares > 0
    n, squares, fourths = sizes[varies], squares[varies], fourths[varies]
    if not len(n):
        return 0.0
    excess = np.maximum(n * fourths / squares**2 - 1, 1e-9)
    own = np.clip(2 * n / excess, 1.0, np.maximum(n - 1, 1))
    parts = squares * n / np.maximum(n - 1, 1)
    df = float(parts.sum()) ** 2 / float((parts**2 / own).sum())
    return min(df, max(1.0, float(sizes.sum() - np.count_nonzero(sizes))))


def _of_one_stratum(n: int, square: float, fourth: float) -> float:
    """The same without arrays, which are most of the work where there is one stratum."""
    if not square > 0:
        return 0.0
    excess = max(n * fourth / (square * square) - 1, 1e-9)
    own = min(max(2 * n / excess, 1.0), max(n - 1, 1))
    part = square * n / max(n - 1, 1)
    return min(part**2 / (part * part / own), max(1.0, float(n - 1)))
