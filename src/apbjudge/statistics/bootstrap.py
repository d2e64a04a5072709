"""Intervals of anything that is a function of a count table.

Resampling n items and counting them is the same as drawing counts from a multinomial
distribution over the distinct kinds of item, so that the effort depends on the number of kinds (a
few dozen) and not on n. Where whole clusters are drawn, the kinds are clusters. The jackknife
likewise leaves out one unit of each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from .estimates import (
    CONFIDENCE_LEVEL,
    SEED,
    Array,
    Estimate,
    Ids,
    cluster_note,
    nothing,
    t_quantile,
)
from .moments import effective_df
from .proportions import score_interval
from .sample import Kinds

Statistic = Callable[[Array], Array]
N_CASE_RESAMPLES = 4000
_CHUNK = 4_000_000


def ratio(
    numerators: Array, denominators: Array, cases: Ids | None, *, level: float = CONFIDENCE_LEVEL
) -> Estimate:
    """Sum of numerators over sum of denominators (a mean, with ones below), by case.

    Args:
        numerators: Shape (n,).
        denominators: Shape (n,), not negative.
        cases: Shape (n,); None when each row is a case of its own.
        level: Confidence level.
    """
    columns = np.stack([numerators, denominators], axis=1)

    def statistic(sums: Array) -> Array:
        return sums[..., 0] / np.where(sums[..., 1] > 0, sums[..., 1], np.nan)

    return cluster_bootstrap(columns, cases, statistic, n_items=len(numerators), level=level)


def cluster_bootstrap(
    columns: Array,
    cases: Ids | None,
    statistic: Statistic,
    *,
    n_items: int,
    level: float = CONFIDENCE_LEVEL,
    n_resamples: int = N_CASE_RESAMPLES,
    seed: int = SEED,
) -> Estimate:
    """Percentile bootstrap of a function of column sums, resampling whole cases.

    Args:
        columns: Shape (n, m): what each row adds to the m sums.
        cases: Shape (n,): rows of one case are drawn together; None when none share one.
        statistic: Maps sums of shape (..., m) to values of shape (...); NaN where undefined.
        n_items: Denominator to be reported.
        level: Confidence level.
        n_resamples: Number of resamples, at least 1.
        seed: Seed; the same seed gives the same interval on every machine.

    Returns:
        The estimate; without interval when there is one case (``none``) or when every resample
        gives the same value (``no-spread``): resampling then shows no uncertainty where there is
        some. Not bias-corrected: with fewer than about 15 cases the interval is too narrow.
    """
    if cases is not None and len(cases) != len(columns):
        raise ValueError(f"cases: expected {len(columns)} entries, got {len(cases)}")
    if len(columns) == 0:
        return nothing(level, n_items=n_items)
    sums = _per_case(columns, cases)
    value = float(statistic(sums.sum(axis=0)))
    if np.isnan(value):
        return nothing(level, n_items=n_items)
    n_clusters = len(sums)
    estimate = Estimate(
        value=value,
        low=None,
        high=None,
        level=level,
        method="none" if n_clusters == 1 else "no-spread",
        n_items=n_items,
        n_clusters=n_clusters,
    )
    if n_clusters == 1:
        return estimate
    resampled = _resample(sums, statistic, n_resamples, seed)
    low, high = np.nanquantile(resampled, [(1 - level) / 2, (1 + level) / 2]).tolist()
    if np.nanmax(resampled) - np.nanmin(resampled) <= 1e-9 * max(1.0, abs(value)):
        return estimate
    return replace(
        estimate,
        low=low,
        high=high,
        method="cluster-bootstrap",
        n_resamples=n_resamples,
        seed=seed,
    )


def _per_case(columns: Array, cases: Ids | None) -> Array:
    if cases is None:
        return columns
    _, index = np.unique(cases, return_inverse=True)
    sums = [np.bincount(index, weights=column).astype(float) for column in columns.T]
    return _rounded(np.stack(sums, axis=1))


def _rounded(values: Array) -> Array:
    """To 12 significant digits, so that the order of adding up leaves no trace."""
    size = np.abs(values)
    exponent = np.floor(np.log10(np.where(size > 0, size, 1.0)))
    scale = 10.0 ** np.clip(11 - exponent, -290, 290)
    return np.round(values * scale) / scale


def _kinds(sums: Array) -> tuple[Array, Ids]:
    """The distinct rows in lexicographic order, and how often each occurs.

    What ``np.unique(axis=0)`` gives, several times as fast for a million rows.
    """
    code = np.zeros(len(sums), dtype=np.int64)
    for column in sums.T:
        values, inverse = np.unique(column, return_inverse=True)
        code = np.unique(code * len(values) + inverse, return_inverse=True)[1]
    _, first, counts = np.unique(code, return_index=True, return_counts=True)
    return sums[first], counts


def _resample(sums: Array, statistic: Statistic, n_resamples: int, seed: int) -> Array:
    """Draws how often each distinct row of sums occurs, a chunk of resamples at a time."""
    kinds, counts = _kinds(sums)
    rng = np.random.default_rng(seed)
    share = counts / counts.sum()
    step = max(1, _CHUNK // len(kinds))
    resampled = [
        statistic(rng.multinomial(len(sums), share, size=min(step, n_resamples - at)) @ kinds)
        for at in range(0, n_resamples, step)
    ]
    return np.concatenate(resampled)


Measure = Callable[[Array], Array]
"""Maps tables of counts, shape (..., n_codes), to values, shape (...); NaN where undefined."""
Method = Literal["jeffreys", "jackknife", "bca", "percentile"]
METHODS: tuple[Method, ...] = ("jeffreys", "jackknife", "bca", "percentile")
N_RESAMPLES = 10_000
UNDEFINED_ALLOWED = 0.05
UNDEFINED_WITHOUT_ONE = "leaving out one item leaves it undefined"
_IN_CACHE = 100_000
_CHEAPER = 8  # an index costs about an eighth of a binomial draw


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Resampled counts.

    Attributes:
        tables: Shape (n_resamples, n_codes).
        seed: Seed of the draws.
    """

    tables: Array
    seed: int


def draw(strata: Sequence[Kinds], *, n_resamples: int, seed: int) -> Draws:
    """Resamples units within strata."""
    rng = np.random.default_rng(seed)
    tables = np.zeros((n_resamples, strata[0].tables.shape[1]))
    for kinds in strata:
        _add_draws(tables, kinds, rng)
    return Draws(tables=tables, seed=seed)


def _add_draws(tables: Array, kinds: Kinds, rng: np.random.Generator) -> None:
    """Adds to each resample the counts of as many units as the stratum has."""
    n_units, n_kinds = kinds.n_units, len(kinds.counts)
    if n_units == 1:
        tables += kinds.tables[0]
        return
    if n_kinds * _CHEAPER > n_units:
        _add_by_index(tables, np.repeat(kinds.tables, kinds.counts, axis=0), rng)
        return
    step = max(1, _CHUNK // n_kinds)
    for at in range(0, len(tables), step):
        size = min(step, len(tables) - at)
        resampled = rng.multinomial(n_units, kinds.counts / n_units, size=size)
        tables[at : at + size] += resampled @ kinds.tables


def _add_by_index(tables: Array, units: Array, rng: np.random.Generator) -> None:
    n, occurring = len(units), np.flatnonzero(units.any(axis=0))
    units, step = units[:, occurring], max(1, _IN_CACHE // n)
    for at in range(0, len(tables), step):
        size = min(step, len(tables) - at)
        index = rng.integers(0, n, size=(size, n))
        index += np.arange(0, size * n, n)[:, None]
        times = np.bincount(index.ravel(), minlength=size * n).reshape(size, n)
        tables[at : at + size, occurring] += times @ units


def point(
    strata: Sequence[Kinds], measure: Measure, *, n_items: int, level: float
) -> tuple[Estimate, bool]:
    """A measure without interval, and whether one can be made."""
    if not strata:
        return nothing(level), False
    value = float(measure(_observed(strata)))
    if np.isnan(value):
        return nothing(level, n_items=n_items, note="not defined for these counts"), False
    n_units = sum(kinds.n_units for kinds in strata)
    estimate = Estimate(
        value=value,
        low=None,
        high=None,
        level=level,
        method="none",
        n_items=n_items,
        n_clusters=n_units,
        note=cluster_note(n_items, n_units) if n_units > 1 else "one unit shows no spread",
    )
    return estimate, n_units > 1


def _observed(strata: Sequence[Kinds]) -> Array:
    return np.sum([kinds.observed for kinds in strata], axis=0)


def jackknife(
    strata: Sequence[Kinds],
    measure: Measure,
    *,
    n_items: int,
    level: float = CONFIDENCE_LEVEL,
    bounds: tuple[float, float] | None = (-1.0, 1.0),
) -> Estimate:
    """A measure of a count table with its jackknife interval.

    The variance comes from leaving out one unit at a time (Tukey 1958; by strata, Shao & Tu 1995,
    section 6.2). A measure with bounds gets Wilson's score interval with that variance
    (``proportions.score_interval``), which can't leave them and covers better than a symmetric one;
    Student's t has the effective degrees of freedom of the changes.

    Args:
        strata: The units, as ``tabulate`` gives them; none where there are no rows.
        measure: The measure, a smooth function of the counts.
        n_items: Rows.
        level: Confidence level.
        bounds: Least and greatest value; None for a measure without.

    Returns:
        The estimate. Without interval, and with the reason in ``note``, when there is one unit,
        when leaving out a unit changes nothing, or leaves the measure without value.

    When not to use it: for medians and other quantiles, which are not smooth.
    """
    estimate, whole = point(strata, measure, n_items=n_items, level=level)
    if not whole:
        return estimate
    value = estimate.value or 0.0
    variance, df = jackknife_variance(strata, measure)
    if np.isnan(variance):
        return replace(estimate, note=UNDEFINED_WITHOUT_ONE)
    if variance <= 1e-20 * max(1.0, value * value):
        return replace(estimate, note="the items show no spread")
    if bounds is None:
        half = t_quantile(0.5 + level / 2, df) * variance**0.5
        low, high = value - half, value + half
    else:
        low, high = score_interval(value, variance, df, level=level, bounds=bounds)
    return replace(estimate, low=min(low, value), high=max(high, value), method="jackknife")


def jackknife_variance(strata: Sequence[Kinds], measure: Measure) -> tuple[float, float]:
    """Sum over strata of (C - 1) / C times the squared changes.

    Returns:
        The variance, NaN where leaving a unit out leaves the measure without value; its effective
        degrees of freedom.
    """
    # what is left of a stratum stands for all of it, or the measure's weights would shift
    stretched, observed = len(strata) > 1, _observed(strata)
    changes = [
        _changes(observed, kinds, measure, stretched=stretched)
        for kinds in strata
        if kinds.n_units > 1
    ]
    sizes, squares, fourths = np.array(changes).reshape(-1, 3).T
    variance = float(((sizes - 1) / np.maximum(sizes, 1) * squares).sum())
    return variance, 0.0 if np.isnan(variance) else effective_df(sizes, squares, fourths)


def _changes(
    observed: Array, kinds: Kinds, measure: Measure, *, stretched: bool
) -> tuple[float, float, float]:
    """Units of a stratum; sums of second and fourth powers of what leaving one out changes."""
    n = kinds.n_units
    scale = n / (n - 1) if stretched else 1.0
    values = measure(observed - kinds.observed + kinds.without * scale)
    squares = (values - np.average(values, weights=kinds.counts)) ** 2
    return n, float((kinds.counts * squares).sum()), float((kinds.counts * squares**2).sum())


def bootstrap(
    strata: Sequence[Kinds],
    draws: Draws | None,
    measure: Measure,
    *,
    n_items: int,
    level: float = CONFIDENCE_LEVEL,
    method: Literal["bca", "percentile"] = "bca",
) -> Estimate:
    """A measure of a count table with its bootstrap interval.

    Percentile (Efron 1979) or bias-corrected and accelerated (BCa, Efron 1987,
    doi:10.1080/01621459.1987.10478410), whose acceleration comes from leaving out one unit at a
    time; units of one kind need to be left out once.

    Args:
        strata: The units, as ``tabulate`` gives them; none where there are no rows.
        draws: The same, resampled; None where there are no rows.
        measure: The measure.
        n_items: Rows.
        level: Confidence level.
        method: ``bca`` or ``percentile``.

    Returns:
        The estimate. Without interval, and with the reason in ``note``, when there is one unit,
        when resampling shows no spread, or when more than 5 % of resamples have no value.

    When not to use it: for rates and bounded means ``proportions`` has intervals that hold with
    fewer rows; with fewer than about 100 rows, or rare classes, ``jackknife`` covers better; below
    about 15 units every bootstrap interval is too narrow.
    """
    estimate, whole = point(strata, measure, n_items=n_items, level=level)
    if not whole or draws is None:
        return estimate
    value = estimate.value or 0.0
    values = measure(draws.tables)
    defined = values[~np.isnan(values)]
    if reason := _reason(defined, len(values), value):
        return replace(estimate, note=reason)
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    if method == "bca":
        tails = _moved(tails, strata, measure, defined, value)
    low, high = np.quantile(defined, tails)
    return replace(
        estimate,
        low=min(float(low), value),
        high=max(float(high), value),
        method=method,
        n_resamples=len(values),
        seed=draws.seed,
    )


def _reason(defined: Array, n_resamples: int, value: float) -> str:
    undefined = 1 - len(defined) / n_resamples
    if undefined > UNDEFINED_ALLOWED:
        return f"not defined in {undefined:.0%} of resamples: too few items of one class"
    if np.ptp(defined) <= 1e-9 * max(1.0, abs(value)):
        return "resampling shows no spread"
    return ""


def _moved(
    tails: Array, strata: Sequence[Kinds], measure: Measure, values: Array, value: float
) -> Array:
    """The shares of resamples at which a BCa interval ends; ties with the value count half."""
    from scipy.special import ndtr, ndtri

    tolerance = 1e-12 * max(1.0, abs(value))
    below = np.mean(values < value - tolerance) + np.mean(np.abs(values - value) <= tolerance) / 2
    if not 0 < below < 1:
        return tails
    bias = ndtri(below)
    shifted = bias + ndtri(tails)
    return ndtr(bias + shifted / (1 - _acceleration(strata, measure) * shifted))


def _acceleration(strata: Sequence[Kinds], measure: Measure) -> float:
    observed = _observed(strata)
    values = measure(observed - np.concatenate([kinds.tables for kinds in strata]))
    times = np.concatenate([kinds.counts for kinds in strata])[~np.isnan(values)]
    values = values[~np.isnan(values)]
    if not len(values):
        return 0.0
    distance = np.average(values, weights=times) - values
    below = float((times * distance**2).sum())
    return float((times * distance**3).sum()) / (6 * below**1.5) if below > 1e-30 else 0.0
