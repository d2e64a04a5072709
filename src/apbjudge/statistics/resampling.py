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

from .intervals import CONFIDENCE_LEVEL, Array, Estimate, nothing
from .moments import effective_df
from .shares import cluster_note, score_interval
from .student import t_quantile
from .units import Kinds

Measure = Callable[[Array], Array]
"""Maps tables of counts, shape (..., n_codes), to values, shape (...); NaN where undefined."""

Method = Literal["jeffreys", "jackknife", "bca", "percentile"]
METHODS: tuple[Method, ...] = ("jeffreys", "jackknife", "bca", "percentile")

N_RESAMPLES = 10_000
UNDEFINED_ALLOWED = 0.05
UNDEFINED_WITHOUT_ONE = "leaving out one item leaves it undefined"
_CHUNK = 4_000_000
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
    """Resamples units within strata.

    Args:
        strata: The units, as ``tabulate`` gives them.
        n_resamples: Number of resamples, at least 1.
        seed: Seed; the same seed and numpy give the same draws on every machine.
    """
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
        drawn = rng.multinomial(n_units, kinds.counts / n_units, size=size)
        tables[at : at + size] += drawn @ kinds.tables


def _add_by_index(tables: Array, units: Array, rng: np.random.Generator) -> None:
    n, held = len(units), np.flatnonzero(units.any(axis=0))
    units, step = units[:, held], max(1, _IN_CACHE // n)
    for at in range(0, len(tables), step):
        size = min(step, len(tables) - at)
        index = rng.integers(0, n, size=(size, n))
        index += np.arange(0, size * n, n)[:, None]
        times = np.bincount(index.ravel(), minlength=size * n).reshape(size, n)
        tables[at : at + size, held] += times @ units


def point(
    strata: Sequence[Kinds], measure: Measure, *, n_items: int, level: float
) -> tuple[Estimate, bool]:
    """A measure without interval, and whether one can be made.

    Args:
        strata: The units; none where there are no rows.
        measure: The measure.
        n_items: Rows.
        level: Confidence level.
    """
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
    (``shares.score_interval``), which can't leave them and covers better than a symmetric one;
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
        low, high = _student(value, variance, df, level)
    else:
        low, high = score_interval(value, variance, df, level=level, bounds=bounds)
    return replace(estimate, low=min(low, value), high=max(high, value), method="jackknife")


def jackknife_variance(strata: Sequence[Kinds], measure: Measure) -> tuple[float, float]:
    """Sum over strata of (C - 1) / C times the squared changes.

    Args:
        strata: The units.
        measure: The measure.

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


def _student(value: float, variance: float, df: float, level: float) -> tuple[float, float]:

    half = t_quantile(0.5 + level / 2, df) * variance**0.5
    return value - half, value + half


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

    When not to use it: for rates and bounded means ``shares`` has intervals that hold with fewer
    rows; with fewer than about 100 rows, or rare classes, ``jackknife`` covers better; below
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
