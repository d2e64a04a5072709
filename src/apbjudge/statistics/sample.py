"""Designs of samples, and the values and variances of ratios of sums that follow from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from .estimates import CONFIDENCE_LEVEL, SEED, Array, Ids

Method = Literal["jeffreys", "jackknife", "bca", "percentile"]
METHODS: tuple[Method, ...] = get_args(Method)
N_RESAMPLES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalSettings:
    """Settings of intervals.

    Attributes:
        level: Confidence level, between 0 and 1.
        method: ``jeffreys`` or ``jackknife``: for coefficients; rates and bounded means have
            Wilson's interval with an effective number of rows. ``bca`` or ``percentile``: a
            bootstrap of all figures, by cluster.
        n_resamples: Number of bootstrap resamples, if any.
        seed: Seed of the resampling.
    """

    level: float = CONFIDENCE_LEVEL
    method: Method = "jeffreys"
    n_resamples: int = N_RESAMPLES
    seed: int = SEED

    @property
    def is_bootstrap(self) -> bool:
        """True if all figures are bootstrapped."""
        return self.method in {"bca", "percentile"}

    def of(self, sample: Sample | None = None) -> Sample:
        """The sample (None: independent rows), with the bootstrap if these settings ask for it."""
        sample = sample or Sample()
        return replace(sample, resampling=self) if self.is_bootstrap else sample


BY_FORMULA = IntervalSettings()
"""The settings with the best coverage."""


@dataclass(frozen=True, slots=True)
class Kinds:
    """Distinct units of one stratum.

    Attributes:
        tables: Shape (n_kinds, n_codes): contribution of one unit of a kind to the counts.
        counts: Shape (n_kinds,): number of units of the kind.
    """

    tables: Array
    counts: Ids

    @classmethod
    def merged(cls, tables: Array, counts: Ids) -> Kinds:
        """Merges equal units, in an order that depends on their content alone."""
        if len(tables) == 1:
            return cls(tables, counts.astype(np.int64))
        used = tables[:, tables.any(axis=0)]
        order = np.lexsort(used.T[::-1]) if used.size else np.arange(len(tables))
        used = used[order]
        first = np.flatnonzero(np.append(True, (used[1:] != used[:-1]).any(axis=1)))
        return cls(tables[order[first]], np.add.reduceat(counts[order], first).astype(np.int64))

    @property
    def n_units(self) -> int:
        """Units of all kinds."""
        return int(self.counts.sum())

    @property
    def observed(self) -> Array:
        """Shape (n_codes,): the counts of all units."""
        return self.counts @ self.tables


def tabulate(codes: Ids, n_codes: int, sample: Sample) -> list[Kinds]:
    """The kinds of units of each stratum, from one code (0 to ``n_codes`` - 1) per row.

    A row adds its weight to its count. Neither the order of the rows nor the names of clusters
    matter. Rows of a stratum that are not in this part of the sample add nothing.

    Raises:
        ValueError: If a code is out of range.
    """
    in_all = np.bincount(codes, minlength=n_codes)
    if len(in_all) > n_codes:
        raise ValueError(f"codes: expected 0 to {n_codes - 1}, got {len(in_all) - 1}")
    if sample.is_plain:
        return plain(in_all)
    n = len(codes)
    weights = np.ones(n) if sample.weights is None else sample.weights
    strata = np.zeros(n, dtype=np.int64) if sample.strata is None else sample.strata
    if sample.clusters is None:  # rows with equal stratum, weight and code are one kind
        sizes, size = np.unique(weights, return_inverse=True)
        keys, times = np.unique((strata * len(sizes) + size) * n_codes + codes, return_counts=True)
        tables = np.zeros((len(keys), n_codes))
        tables[np.arange(len(keys)), keys % n_codes] = sizes[keys // n_codes % len(sizes)]
        stratum = keys // n_codes // len(sizes)
    else:
        unit, stratum = sample.units(n)
        sums = np.bincount(unit * n_codes + codes, weights, len(stratum) * n_codes)
        tables = sums.astype(float).reshape(len(stratum), n_codes)
        times = np.ones(len(stratum), dtype=np.int64)
    n_in = np.bincount(strata)
    kinds: list[Kinds] = []
    for s in np.unique(stratum):
        own, counts = tables[stratum == s], times[stratum == s]
        if (
            sample.design is not None
            and (left_out := int(sample.design.n_sampled[s] - n_in[s])) > 0
        ):
            own, counts = np.vstack([own, np.zeros(n_codes)]), np.append(counts, left_out)
        kinds.append(Kinds.merged(own, counts))
    return kinds


def unit_sums(columns: Array, sample: Sample) -> list[Kinds]:
    """Sums of units over the weighted columns, shape (n, m), by stratum; see ``tabulate``.

    Sums are rounded to 12 significant digits, so that the order of summation has no effect.
    """
    n, m = columns.shape
    if sample.weights is not None:
        columns = columns * sample.weights[:, None]
    unit, stratum = sample.units(n)
    by_unit = [np.bincount(unit, column, len(stratum)) for column in columns.T]
    sums = _rounded(np.stack(by_unit, axis=1).astype(float))
    strata: list[Kinds] = []
    for s in np.unique(stratum):
        own = sums[stratum == s]
        if sample.design is not None and sample.strata is not None:
            left_out = int(sample.design.n_sampled[s]) - int((sample.strata == s).sum())
            own = np.vstack([own, np.zeros((max(0, left_out), m))])
        strata.append(Kinds.merged(own, np.ones(len(own))))
    return strata


def _rounded(values: Array) -> Array:
    size = np.abs(values)
    exponent = np.floor(np.log10(np.where(size > 0, size, 1.0)))
    scale = 10.0 ** np.clip(11 - exponent, -290, 290)
    return np.round(values * scale) / scale


def plain(counts: Ids) -> list[Kinds]:
    """One stratum of equally likely single rows, from the counts of their codes; may be empty."""
    occurring = np.flatnonzero(counts)
    if not len(occurring):
        return []
    tables = np.zeros((len(occurring), len(counts)))
    tables[np.arange(len(occurring)), occurring] = 1
    return [Kinds(tables, counts[occurring].astype(np.int64))]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Strata:
    """Properties of strata, besides the stratum of each row.

    Attributes:
        n_sampled: Shape (S,): rows sampled in each stratum, including those outside this part of
            the sample.
        shares: Shape (S,): each stratum's share of the population; None if unknown.
        n_counted: Number of rows from which the shares were counted, if these are a sample of
            independent rows; None if the shares are exact, unknown, or from rows in clusters.
        by_cluster: Shape (C, S): contribution of each cluster to the error of the shares, if these
            were counted in a sample of clusters; the sample's clusters are indices into it.
    """

    n_sampled: Ids
    shares: Array | None = None
    n_counted: int | None = None
    by_cluster: Array | None = None

    @classmethod
    def counted(cls, of_labelled: Ids, of_all: Ids, clusters: Ids | None) -> Strata:
        """Strata of a run that is a sample, some of whose rows were labelled.

        Shapes: ``of_labelled`` (n,), stratum of each labelled row; ``of_all`` (N,), of each row of
        the run; ``clusters`` (N,), rows that were sampled together, None if each was sampled by
        itself; all whole numbers from 0. A stratum without labels has a share of 0.
        """
        n_sampled = np.bincount(of_labelled, minlength=int(of_all.max()) + 1)
        size = len(n_sampled)
        covered = n_sampled[of_all] > 0
        of_all = of_all[covered]
        n = len(of_all)
        shares: Array = np.bincount(of_all, minlength=size) / n
        if clusters is None:
            return cls(n_sampled=n_sampled, shares=shares, n_counted=n)
        cells = np.bincount(
            clusters[covered] * size + of_all, minlength=(int(clusters.max()) + 1) * size
        ).reshape(-1, size)
        excess = (cells - cells.sum(axis=1, keepdims=True) * shares) / n
        return cls(n_sampled=n_sampled, shares=shares, by_cluster=excess)

    def share_variance(self, slopes: Array) -> float:
        """Variance that counted shares add to the sum of shares times ``slopes``, shape (S,)."""
        if self.by_cluster is not None:
            return float(((self.by_cluster @ slopes) ** 2).sum())
        if self.shares is None or self.n_counted is None:
            return 0.0
        mean = float(self.shares @ slopes)
        return float(self.shares @ (slopes - mean) ** 2) / self.n_counted


@dataclass(frozen=True, kw_only=True)  # no slots, so that units can be cached
class Sample:
    """The design by which n rows were sampled; ``Sample()``: each by itself, all equally likely.

    Attributes:
        clusters: Shape (n,), any ids: rows of one cluster (a case, a query) were sampled together.
            None if no two rows share one.
        weights: Shape (n,), above 0: the inverse of each row's chance to be sampled, up to a common
            factor; stored with a mean of 1. None if all had the same chance.
        strata: Shape (n,), any ids: rows of different strata were sampled apart from each other; a
            cluster in two strata counts as two. None if there was one stratum.
        design: Properties of the strata, by index; derived from ``strata`` if missing. Parts of the
            sample share it (``take``).
        resampling: The bootstrap whose intervals replace those of formulas, for every rate, mean,
            ratio and difference over the rows; None for none.

    Raises:
        ValueError: If lengths differ or a weight is not above 0.
    """

    clusters: Ids | None = None
    weights: Array | None = None
    strata: Ids | None = None
    design: Strata | None = None
    resampling: IntervalSettings | None = None

    def __post_init__(self) -> None:
        columns = (self.clusters, self.weights, self.strata)
        lengths = {len(column) for column in columns if column is not None}
        if len(lengths) > 1:
            raise ValueError(f"sample: expected columns of one length, got {sorted(lengths)}")
        if self.weights is not None and not bool(np.all(self.weights > 0)):
            raise ValueError("weights: expected numbers above 0")
        if self.design is None:  # else they are indices into the design
            for name, ids in (("clusters", self.clusters), ("strata", self.strata)):
                if ids is not None:
                    codes = ids if _is_coded(ids) else np.unique(ids, return_inverse=True)[1]
                    object.__setattr__(self, name, codes.astype(np.int64, copy=False))
        alone = self.clusters is not None and not np.any(np.bincount(self.clusters) > 1)
        if alone and (self.design is None or self.design.by_cluster is None):
            object.__setattr__(self, "clusters", None)
        if self.strata is not None and self.design is None:
            object.__setattr__(self, "design", Strata(n_sampled=np.bincount(self.strata)))
        if self.weights is not None and len(self.weights):
            least, greatest = float(self.weights.min()), float(self.weights.max())
            equal = greatest - least <= 1e-12 * greatest
            weights = np.ones(len(self.weights)) if equal else self.weights / self.weights.mean()
            object.__setattr__(self, "weights", weights)

    @property
    def is_plain(self) -> bool:
        """True if rows are independent and equally likely."""
        if self.clusters is not None or self.strata is not None:
            return False
        return self.weights is None or bool(np.all(self.weights == 1))

    @property
    def stratum_weights(self) -> Array | None:
        """Shape (S,): weight of a row of each stratum, in this part or not; None if unknown."""
        design, weights, strata = self.design, self.weights, self.strata
        if design is None or design.shares is None or weights is None or strata is None:
            return None
        if not len(strata):
            return None
        of_row = design.shares / np.maximum(design.n_sampled, 1)
        return of_row * (weights[0] / of_row[strata[0]])

    @property
    def evenness(self) -> float:
        """Mean weight over the greatest weight of the sampled rows: 1 if all are equal.

        Times the number of rows, it is the number of rows of the greatest weight that would be as
        precise.
        """
        if self.weights is None or not len(self.weights):
            return 1.0
        greatest, of_strata = float(self.weights.max()), self.stratum_weights
        if of_strata is not None:
            greatest = max(greatest, float(of_strata.max()))
        return float(self.weights.mean()) / greatest

    def take(self, rows: Ids) -> Sample:
        """The sample of some rows; strata keep the number of rows that were sampled in all."""
        clusters, weights, strata = (
            None if column is None else column[rows]
            for column in (self.clusters, self.weights, self.strata)
        )
        return replace(self, clusters=clusters, weights=weights, strata=strata)

    def units(self, n: int) -> tuple[Ids, Ids]:
        """The units of sampling: clusters within strata, or single rows.

        Returns:
            Shape (n,), the unit of each row, from 0 without gaps; shape (n_units,), the stratum
            of each unit.
        """
        if (units := self._clustered) is not None:
            return units
        return np.arange(n), np.zeros(n, dtype=np.int64) if self.strata is None else self.strata

    @cached_property
    def _clustered(self) -> tuple[Ids, Ids] | None:
        if self.clusters is None:
            return None
        if self.strata is None:
            is_there = np.bincount(self.clusters) > 0
            number = np.cumsum(is_there) - 1
            return number[self.clusters], np.zeros(int(is_there.sum()), dtype=np.int64)
        width = int(self.clusters.max(initial=0)) + 1
        keys, unit = np.unique(self.strata * width + self.clusters, return_inverse=True)
        return unit, keys // width


def _is_coded(ids: Ids) -> bool:
    """True if ids are whole numbers from 0 on with few gaps, which need no search."""
    if ids.dtype.kind != "i":
        return False
    return not len(ids) or (int(ids.min()) >= 0 and int(ids.max()) < 4 * len(ids) + 1024)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Error of a sum of rows' contributions to an estimate.

    Attributes:
        variance: Never below that of independent rows; 0 if the rows have no spread.
        n_clusters: Number of units.
        df: Degrees of freedom: units less strata, at least 0.
        effective_df: Effective degrees of freedom of the variance (``effective_df``).
    """

    variance: float
    n_clusters: int
    df: int
    effective_df: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments(Spread):
    """A ratio of weighted sums and its error.

    Attributes:
        value: Sum of numerators over sum of denominators.
        n_items: Rows whose denominator is above 0.
        n_effective: Number of units; with unequal weights, the number of the heaviest that would be
            as precise.
        is_flat: True if every row's own ratio is the value.
    """

    value: float
    n_items: int
    n_effective: float
    is_flat: bool


def ratio_moments(numerators: Array, denominators: Array, sample: Sample) -> Moments | None:
    """Value and variance of a ratio of sums, columns of shape (n,); None if the denominator is 0.

    The usual linearised variance of a ratio under sampling of whole clusters (Cochran 1977,
    Sampling Techniques, sections 6.3 and 11); see ``spread``. Rows with a denominator of 0 are
    not counted.
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
        is_flat=float(np.abs(contributions).max()) < 1e-12,
    )


def _unseen(contributions: Array, sample: Sample, reach: float) -> float:
    """Variance of half a row of another outcome in the strata whose rows all contribute the same.

    A few rows of one outcome don't show that their stratum has no other; if they stand for many
    rows, this is most of the uncertainty. ``reach``: the amount by which a row of weight 1 may
    contribute more or less.
    """
    weights, design = sample.stratum_weights, sample.design
    if weights is None or design is None or sample.strata is None:
        return 0.0
    size = len(weights)
    in_part = np.bincount(sample.strata, minlength=size)
    least, greatest = np.zeros(size), np.zeros(size)
    np.minimum.at(least, sample.strata, contributions)
    np.maximum.at(greatest, sample.strata, contributions)
    full = in_part == design.n_sampled
    same = np.bincount(sample.strata, contributions, size) / np.maximum(in_part, 1)
    flat = np.where(full, np.maximum(greatest - same, same - least), greatest - least) < 1e-12
    flat &= design.n_sampled > 0
    rows = int(design.n_sampled[flat].sum())
    if not rows:
        return 0.0
    mean = float((weights * design.n_sampled)[flat].sum()) / rows
    return 0.5 * (mean * reach) ** 2


def spread(contributions: Array, sample: Sample) -> Spread:
    """Variance of a sum of rows' contributions (shape (n,), weights included), by units.

    Contributions are squared by unit and added up within strata, with the factor C / (C - 1), as
    if sampled with replacement. Rows of a stratum outside this part of the sample count with a
    contribution of 0 (Cochran 1977, section 2.13): the number of rows in the part is random too. If
    the shares of strata were counted in a sample, their own variance is added. Clusters that span
    strata stay whole.
    """
    if sample.strata is not None and sample.design is not None:
        return _within_strata(contributions, sample.strata, sample.design, sample.clusters)
    n = len(contributions)
    unit, strata = sample.units(n)
    n_units = len(strata)
    powers = _powers(np.bincount(unit, contributions, n_units).astype(float))
    if n_units != n:
        powers = max(powers, _powers(contributions), key=_sum_of)
    df = max(0, n_units - 1)
    return Spread(
        variance=_sum_of(powers),
        n_clusters=n_units,
        df=df,
        effective_df=min(df, effective_df(*powers)),
    )


def _within_strata(
    contributions: Array, strata: Ids, design: Strata, clusters: Ids | None
) -> Spread:
    size, sizes = len(design.n_sampled), design.n_sampled
    left_out = sizes - np.bincount(strata, minlength=size)
    sums: Array = np.bincount(strata, contributions, size).astype(float)
    means = np.where(sizes > 1, sums / np.maximum(sizes, 1), 0.0)
    distances = contributions - means[strata]
    second = (np.bincount(strata, distances**2, size) + left_out * means**2).astype(float)
    fourth = (np.bincount(strata, distances**4, size) + left_out * means**4).astype(float)
    within = variance = _sum_of((sizes, second, fourth))
    n_units, n_strata = len(contributions), int(np.count_nonzero(np.bincount(strata)))
    slopes = np.zeros(size)
    if design.shares is not None and within > 0:
        slopes[design.shares > 0] = (sums / np.maximum(design.shares, 1e-300))[design.shares > 0]
        variance += design.share_variance(slopes)
    own = effective_df(sizes, second, fourth) * (variance / within) ** 2 if within else 0.0
    if clusters is not None:
        n_units = int(np.count_nonzero(np.bincount(clusters)))
        scale = np.sqrt(sizes / np.maximum(sizes - 1, 1))
        by_cluster = np.bincount(clusters, distances * scale[strata])
        if design.by_cluster is not None and within > 0:
            by_cluster = np.pad(by_cluster, (0, len(design.by_cluster) - len(by_cluster)))
            by_cluster = by_cluster + design.by_cluster @ slopes
        second, fourth = (np.array([(by_cluster**k).sum()]).astype(float) for k in (2, 4))
        together: _Powers = (np.array([n_units]), second, fourth)
        if (clustered := _sum_of(together)) > variance:
            variance, own = clustered, effective_df(*together)
    df = max(0, n_units - n_strata)
    return Spread(variance=variance, n_clusters=n_units, df=df, effective_df=own)


_Powers = tuple[Ids, Array, Array]
"""Units of each stratum, and sums of second and fourth powers of the distance from its mean."""


def _powers(contributions: Array) -> _Powers:
    """Units and powers of one stratum."""
    n = len(contributions)
    mean = contributions.sum() / n if n > 1 else 0.0
    squares = (contributions - mean) ** 2
    return np.array([n]), np.array([squares.sum()]), np.array([(squares**2).sum()])


def _sum_of(powers: _Powers) -> float:
    sizes, squares, _ = powers
    variance = float((squares * sizes / np.maximum(sizes - 1, 1)).sum())
    return variance if variance > 1e-24 else 0.0


_LEAST_SQUARE = 1e-140
"""Sums of squares below it count as 0: their own squares would underflow."""


def effective_df(
    sizes: Iterable[float], squares: Iterable[float], fourths: Iterable[float]
) -> float:
    """Effective degrees of freedom of a variance, fewer if units contribute to it unevenly.

    By Satterthwaite's rule (1946, doi:10.2307/3002019): those of the chi-squared distribution
    with the variance's own relative variance, (kurtosis - 1) / C in a stratum of C units, computed
    from each stratum's units and sums of second and fourth powers of the distance from the mean. At
    least 1, at most units less strata (or 1); 0 if there is no spread, or its square underflows.
    """
    variance = of_variance = most = 0.0
    for size, square, fourth in zip(sizes, squares, fourths, strict=True):
        n, second = float(size), float(square)
        most += max(n - 1, 0.0)
        if second > _LEAST_SQUARE:
            excess = max(n * float(fourth) / (second * second) - 1, 1e-9)
            part = second * n / max(n - 1, 1.0)
            variance += part
            of_variance += part * part / min(max(2 * n / excess, 1.0), max(n - 1, 1.0))
    return min(variance**2 / of_variance, max(1.0, most)) if variance else 0.0
