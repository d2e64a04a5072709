"""Intervals of anything that is a function of a count table.

Resampling n items and counting them is the same as drawing counts from a multinomial
distribution over the distinct kinds of item, so that the effort depends on the number of kinds (a
few dozen) and not on n. Where whole clusters are sampled, the kinds are clusters. The jackknife
likewise leaves out one unit of each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

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
from .proportions import score_interval
from .sample import Kinds, effective_df

Measure = Callable[[Array], Array]
"""Maps tables of counts, shape (..., n_codes), to values, shape (...); NaN where undefined."""
Method = Literal["jeffreys", "jackknife", "bca", "percentile"]
METHODS: tuple[Method, ...] = get_args(Method)
N_RESAMPLES = 10_000
N_CASE_RESAMPLES = 4000
UNDEFINED_ALLOWED = 0.05
UNDEFINED_WITHOUT_ONE = "leaving out one item leaves it undefined"
UNCHANGED = "it is the same whichever items are left out"
_CHUNK = 4_000_000
_IN_CACHE = 100_000
_CHEAPER = 8  # an index costs about an eighth of a binomial draw


def ratio_measure(above: Array, below: Array) -> Measure:
    """The ratio of two weighted sums of counts, weights of shape (n_codes,)."""

    def ratio(tables: Array) -> Array:
        total = tables @ below
        return tables @ above / np.where(total > 0, total, np.nan)

    return ratio


def ratio(
    numerators: Array, denominators: Array, cases: Ids | None, *, level: float = CONFIDENCE_LEVEL
) -> Estimate:
    """Sum of numerators over sum of denominators by ``cluster_bootstrap``.

    Args:
        numerators: Shape (n,).
        denominators: Shape (n,), not negative.
        cases: Shape (n,); None when each row is a case of its own.
        level: Confidence level.
    """
    columns = np.stack([numerators, denominators], axis=1)
    measure = ratio_measure(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    return cluster_bootstrap(columns, cases, measure, n_items=len(numerators), level=level)


def cluster_bootstrap(
    columns: Array,
    cases: Ids | None,
    statistic: Measure,
    *,
    n_items: int,
    level: float = CONFIDENCE_LEVEL,
    n_resamples: int = N_CASE_RESAMPLES,
    seed: int = SEED,
) -> Estimate:
    """Percentile bootstrap of a function of column sums, resampling whole cases.

    Args:
        columns: Shape (n, m): what each row adds to the m sums.
        cases: Shape (n,): rows of one case are sampled together; None when none share one.
        statistic: Maps sums of shape (..., m) to values of shape (...); NaN where undefined.
        n_items: Denominator to be reported.
        level: Confidence level.
        n_resamples: Number of resamples, at least 1.
        seed: The same seed gives the same interval on every machine.

    Returns:
        The estimate; without interval when there is one case (``none``) or when every resample
        gives the same value (``no-spread``).

    When not to use it: with fewer than about 15 cases, where the interval is too narrow.
    """
    if cases is not None and len(cases) != len(columns):
        raise ValueError(f"cases: expected {len(columns)} entries, got {len(cases)}")
    if len(columns) == 0:
        return nothing(level, n_items=n_items)
    sums = columns
    if cases is not None:
        index = np.unique(cases, return_inverse=True)[1]
        by_case = [np.bincount(index, weights=column).astype(float) for column in columns.T]
        sums = _rounded(np.stack(by_case, axis=1))
    value, n_clusters = float(statistic(sums.sum(axis=0))), len(sums)
    if np.isnan(value):
        return nothing(level, n_items=n_items)
    estimate = Estimate(value=value, level=level, n_items=n_items, n_clusters=n_clusters)
    if n_clusters == 1:
        return estimate
    kinds = Kinds.merged(sums, np.ones(n_clusters))
    rng = np.random.default_rng(seed)
    values = np.concatenate([statistic(of) for of in _multinomial(kinds, n_resamples, rng)])
    low, high = np.nanquantile(values, [(1 - level) / 2, (1 + level) / 2]).tolist()
    if np.nanmax(values) - np.nanmin(values) <= 1e-9 * max(1.0, abs(value)):
        return replace(estimate, method="no-spread")
    return replace(
        estimate, low=low, high=high, method="cluster-bootstrap", n_resamples=n_resamples, seed=seed
    )


def _rounded(values: Array) -> Array:
    """To 12 significant digits, so that the order of adding up leaves no trace."""
    size = np.abs(values)
    exponent = np.floor(np.log10(np.where(size > 0, size, 1.0)))
    scale = 10.0 ** np.clip(11 - exponent, -290, 290)
    return np.round(values * scale) / scale


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Resampled counts, shape (n_resamples, n_codes), and the seed of the draws."""

    tables: Array
    seed: int


def draw(strata: Sequence[Kinds], *, n_resamples: int, seed: int) -> Draws:
    """Resamples units within strata."""
    rng = np.random.default_rng(seed)
    tables = np.zeros((n_resamples, strata[0].tables.shape[1]))
    for kinds in strata:
        if kinds.n_units == 1:
            tables += kinds.tables[0]
        elif len(kinds.counts) * _CHEAPER > kinds.n_units:
            _add_by_index(tables, np.repeat(kinds.tables, kinds.counts, axis=0), rng)
        else:
            at = 0
            for resampled in _multinomial(kinds, n_resamples, rng):
                tables[at : at + len(resampled)] += resampled
                at += len(resampled)
    return Draws(tables=tables, seed=seed)


def _multinomial(kinds: Kinds, n_resamples: int, rng: np.random.Generator) -> Iterator[Array]:
    """Resampled counts, a chunk of resamples at a time."""
    n_units, step = kinds.n_units, max(1, _CHUNK // len(kinds.counts))
    for at in range(0, n_resamples, step):
        size = min(step, n_resamples - at)
        yield rng.multinomial(n_units, kinds.counts / n_units, size=size) @ kinds.tables


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
    counts: Array, measure: Measure, *, n_items: int, n_units: int, level: float
) -> tuple[Estimate, bool]:
    """A measure of counts without interval, and whether one can be made."""
    if not n_units:
        return nothing(level), False
    value = float(measure(counts))
    if np.isnan(value):
        return nothing(level, n_items=n_items, note="not defined for these counts"), False
    note = cluster_note(n_items, n_units) if n_units > 1 else "one unit shows no spread"
    estimate = Estimate(value=value, level=level, n_items=n_items, n_clusters=n_units, note=note)
    return estimate, n_units > 1


def _point(
    strata: Sequence[Kinds], measure: Measure, n_items: int, level: float
) -> tuple[Estimate, bool]:
    n_units = sum(kinds.n_units for kinds in strata)
    return point(_observed(strata), measure, n_items=n_items, n_units=n_units, level=level)


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
    section 6.2). A measure with bounds gets Wilson's score interval with that variance; one
    without (None), Student's t with the effective degrees of freedom of the changes.

    Returns:
        The estimate. Without interval, and with the reason in ``note``, when there is one unit,
        when leaving out a unit changes nothing, or leaves the measure without value.

    When not to use it: for medians and other quantiles, which are not smooth.
    """
    estimate, has_units = _point(strata, measure, n_items, level)
    if not has_units:
        return estimate
    value = estimate.value or 0.0
    variance, df = jackknife_variance(strata, measure)
    if np.isnan(variance):
        return replace(estimate, note=UNDEFINED_WITHOUT_ONE)
    if variance <= 1e-20 * max(1.0, value * value):
        return replace(estimate, note=UNCHANGED)
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
    observed = _observed(strata)
    changes: list[tuple[float, float, float]] = []
    for kinds in strata:
        if (n := kinds.n_units) < 2:
            continue
        # what is left of a stratum stands for all of it, or the measure's weights would shift
        scale = n / (n - 1) if len(strata) > 1 else 1.0
        in_stratum = kinds.observed
        values = measure(observed - in_stratum + (in_stratum - kinds.tables) * scale)
        squares = (values - np.average(values, weights=kinds.counts)) ** 2
        second, fourth = kinds.counts * squares, kinds.counts * squares**2
        changes.append((n, float(second.sum()), float(fourth.sum())))
    variance = sum((n - 1) / n * second for n, second, _ in changes)
    if np.isnan(variance):
        return variance, 0.0
    sizes, squares, fourths = np.array(changes).reshape(-1, 3).T
    return variance, effective_df(sizes, squares, fourths)


def bootstrap(
    strata: Sequence[Kinds],
    draws: Draws | None,
    measure: Measure,
    *,
    n_items: int,
    level: float = CONFIDENCE_LEVEL,
    method: Literal["bca", "percentile"] = "bca",
) -> Estimate:
    """A measure of a count table with its bootstrap interval; ``draws`` are of the same strata.

    Percentile (Efron 1979) or bias-corrected and accelerated (BCa, Efron 1987,
    doi:10.1080/01621459.1987.10478410), whose acceleration comes from leaving out one unit at a
    time; units of one kind need to be left out once.

    Returns:
        The estimate. Without interval, and with the reason in ``note``, when there is one unit,
        when all resamples have the same value, or when more than 5 % of resamples have no value.

    When not to use it: for rates and bounded means (``proportions``); with fewer than about 100
    rows, or rare classes, where ``jackknife`` covers better.
    """
    estimate, has_units = _point(strata, measure, n_items, level)
    if not has_units or draws is None:
        return estimate
    value = estimate.value or 0.0
    values = measure(draws.tables)
    defined = values[~np.isnan(values)]
    undefined = 1 - len(defined) / len(values)
    if undefined > UNDEFINED_ALLOWED:
        note = f"not defined in {undefined:.0%} of resamples: too few items of one class"
        return replace(estimate, note=note)
    if np.ptp(defined) <= 1e-9 * max(1.0, abs(value)):
        return replace(estimate, note=UNCHANGED)
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    if method == "bca":
        tails = _bca_tails(tails, strata, measure, defined, value)
    low, high = np.quantile(defined, tails)
    return replace(
        estimate,
        low=min(float(low), value),
        high=max(float(high), value),
        method=method,
        n_resamples=len(values),
        seed=draws.seed,
    )


def _bca_tails(
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
    values = measure(_observed(strata) - np.concatenate([kinds.tables for kinds in strata]))
    defined = ~np.isnan(values)
    times = np.concatenate([kinds.counts for kinds in strata])[defined]
    values = values[defined]
    if not len(values):
        return 0.0
    distance = np.average(values, weights=times) - values
    below = float((times * distance**2).sum())
    return float((times * distance**3).sum()) / (6 * below**1.5) if below > 1e-30 else 0.0
