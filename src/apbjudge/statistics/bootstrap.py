"""Intervals of functions of a count table.

Resampling n items and counting them is the same as drawing counts from a multinomial
distribution over the distinct kinds of item, so the cost depends on the number of kinds (a few
dozen), not on n. Where whole clusters are sampled, the kinds are clusters. The jackknife likewise
leaves out one unit of each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .estimates import (
    CONFIDENCE_LEVEL,
    SEED,
    Array,
    Estimate,
    cluster_note,
    nothing,
)
from .sample import IntervalSettings, Kinds, Sample, unit_sums

Measure = Callable[[Array], Array]
"""Maps tables of counts, shape (..., n_codes), to values, shape (...); NaN where undefined."""
N_CASE_RESAMPLES = 4000
UNDEFINED_ALLOWED = 0.05
UNCHANGED = "it is the same whichever items are left out"
_COVERAGE = {
    "percentile": "5 21 95, 10 40 97, 15 52 94, 30 74 96, 60 90 98, 100 93 98",
    "bca": "5 21 95, 10 38 97, 15 49 97, 30 74 99, 60 90 99, 100 92 98",
}
"""Cases, and the least and greatest number of 100 intervals at 95 % that held the true value."""
_CHUNK = 4_000_000
_IN_CACHE = 100_000
_CHEAPER = 8  # an index costs about an eighth of a binomial draw


def coverage_note(method: str, n_cases: int) -> str:
    """Coverage of intervals from about this many cases, by ``benchmarks/coverage_bootstrap.py``.

    Empty with more than 200 cases, where they hold the true value as often as they claim.
    """
    measured = [part.split() for part in _COVERAGE[method].split(", ")]
    n, least, most = min(measured, key=lambda of: abs(np.log(int(of[0]) / max(n_cases, 1))))
    share = f"with {n}, {least} to {most} of 100 simulated 95 % intervals held the true value"
    return "" if n_cases > 200 else f"fewest cases: {n_cases}; {share} (docs/coverage.md)"


def ratio_measure(above: Array, below: Array) -> Measure:
    """The ratio of two weighted sums of counts, weights of shape (n_codes,)."""

    def ratio(tables: Array) -> Array:
        total = tables @ below
        return tables @ above / np.where(total > 0, total, np.nan)

    return ratio


RATIO = ratio_measure(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
"""The first of two sums over the second."""


def difference_of_ratios(sums: Array) -> Array:
    """The ratio of the first two of four sums less that of the others."""
    return RATIO(sums[..., :2]) - RATIO(sums[..., 2:])


def ratio(
    numerators: Array,
    denominators: Array,
    sample: Sample | None = None,
    *,
    level: float = CONFIDENCE_LEVEL,
) -> Estimate:
    """Sum of numerators over sum of denominators, shape (n,), by ``cluster_bootstrap``.

    Args:
        numerators: Shape (n,).
        denominators: Shape (n,), not negative.
        sample: Sampling design of the rows; None: each by itself.
        level: Confidence level.
    """
    columns = np.stack([numerators, denominators], axis=1)
    return cluster_bootstrap(columns, sample, RATIO, n_items=len(numerators), level=level)


def cluster_bootstrap(
    columns: Array,
    sample: Sample | None,
    statistic: Measure,
    *,
    n_items: int,
    level: float = CONFIDENCE_LEVEL,
    n_resamples: int = N_CASE_RESAMPLES,
    seed: int = SEED,
) -> Estimate:
    """Percentile bootstrap of a function of column sums, resampling whole cases.

    Args:
        columns: Shape (n, m): each row's contribution to the m sums.
        sample: Sampling design: rows of one cluster are sampled together. None: each by itself. If
            it asks for a bootstrap of its own, that one is used.
        statistic: Maps sums of shape (..., m) to values of shape (...); NaN where undefined.
        n_items: Denominator to be reported.
        level: Confidence level.
        n_resamples: Number of resamples, at least 1.
        seed: The same seed gives the same interval on every machine.

    Returns:
        The estimate; without interval if there is one case (``none``) or if all resamples give the
        same value (``no-spread``).

    Raises:
        ValueError: If the sample has another number of rows.

    When not to use it: with fewer than about 15 cases, where the interval is too narrow.
    """
    sample = sample or Sample()
    if sample.clusters is not None and len(sample.clusters) != len(columns):
        raise ValueError(f"sample: expected {len(columns)} rows, got {len(sample.clusters)}")
    if len(columns) == 0:
        return nothing(level, n_items=n_items)
    strata = unit_sums(columns, sample)
    value, n_clusters = float(statistic(observed(strata))), sum(of.n_units for of in strata)
    if np.isnan(value):
        return nothing(level, n_items=n_items)
    estimate = Estimate(value=value, level=level, n_items=n_items, n_clusters=n_clusters)
    if n_clusters == 1:
        return estimate
    if sample.resampling is not None:
        return resampled(estimate, columns, sample, statistic)
    rng = np.random.default_rng(seed)
    step = max(1, _CHUNK // n_clusters)
    drawn = zip(*(_multinomial(of, n_resamples, rng, step) for of in strata), strict=True)
    values = np.concatenate([statistic(np.sum(of, axis=0)) for of in drawn])
    low, high = np.nanquantile(values, [(1 - level) / 2, (1 + level) / 2]).tolist()
    if np.nanmax(values) - np.nanmin(values) <= 1e-9 * max(1.0, abs(value)):
        return replace(estimate, method="no-spread")
    return replace(
        estimate, low=low, high=high, method="cluster-bootstrap", n_resamples=n_resamples, seed=seed
    )


def resampled(estimate: Estimate, columns: Array, sample: Sample, measure: Measure) -> Estimate:
    """The estimate with the bootstrap interval that its sample asks for, if it asks for one.

    Args:
        estimate: Value, with an interval by a formula.
        columns: Shape (n, m): each row's contribution to the m sums that the value is a function
            of.
        sample: Sampling design of the n rows.
        measure: The function: maps sums of shape (..., m) to values of shape (...).

    Returns:
        The estimate. If all resamples have one value, as at 0 % and 100 %, the interval has no
        width (low = high) and the note has the interval by the formula.
    """
    how = sample.resampling
    if how is None or estimate.value is None or estimate.n_clusters < 2:
        return estimate
    strata = unit_sums(columns, sample)
    draws = draw(strata, n_resamples=how.n_resamples, seed=how.seed)
    of = bootstrap(strata, draws, measure, n_items=1, settings=how, is_ratio=True)
    value, ends = estimate.value, [end for end in (of.low, of.high) if end is not None]
    note = estimate.note if of.low is not None else of.note
    if ends and min(value, *ends) == max(value, *ends) and estimate.low is not None:
        formula = f"{estimate.method}: {estimate.low:.4g} to {estimate.high:.4g}"
        note = f"all resamples are equal, so that the interval has no width; {formula}"
    return replace(
        estimate,
        low=min(value, *ends) if ends else None,
        high=max(value, *ends) if ends else None,
        method=of.method,
        n_resamples=of.n_resamples,
        seed=of.seed,
        note=note,
    )


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
            at, step = 0, max(1, _CHUNK // len(kinds.counts))
            for counts in _multinomial(kinds, n_resamples, rng, step):
                tables[at : at + len(counts)] += counts
                at += len(counts)
    return Draws(tables=tables, seed=seed)


def _multinomial(
    kinds: Kinds, n_resamples: int, rng: np.random.Generator, step: int
) -> Iterator[Array]:
    """Resampled counts, drawn in batches of resamples."""
    n_units = kinds.n_units
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
    """A measure of counts without interval, and True if an interval can be computed."""
    if not n_units:
        return nothing(level), False
    value = float(measure(counts))
    if np.isnan(value):
        return nothing(level, n_items=n_items, note="not defined for these counts"), False
    note = cluster_note(n_items, n_units) if n_units > 1 else "one unit shows no spread"
    estimate = Estimate(value=value, level=level, n_items=n_items, n_clusters=n_units, note=note)
    return estimate, n_units > 1


def point_of(
    strata: Sequence[Kinds], measure: Measure, n_items: int, level: float
) -> tuple[Estimate, bool]:
    """``point`` for the units of strata."""
    n_units = sum(kinds.n_units for kinds in strata)
    return point(observed(strata), measure, n_items=n_items, n_units=n_units, level=level)


def observed(strata: Sequence[Kinds]) -> Array:
    """Shape (n_codes,): the counts of all units of all strata."""
    return np.sum([kinds.observed for kinds in strata], axis=0)


def bootstrap(
    strata: Sequence[Kinds],
    draws: Draws | None,
    measure: Measure,
    *,
    n_items: int,
    settings: IntervalSettings,
    is_ratio: bool = False,
) -> Estimate:
    """A measure of a count table with its bootstrap interval; ``draws`` are of the same strata.

    Percentile (Efron 1979) or bias-corrected and accelerated (BCa, Efron 1987,
    doi:10.1080/01621459.1987.10478410), whose acceleration comes from leaving out one unit at a
    time; units of one kind need to be left out once.

    Returns:
        The estimate. Without interval, and with the reason in ``note``, when there is one unit,
        when more than 5 % of resamples have no value, or when all have the same value: if
        ``is_ratio``, the interval then has no width.

    When not to use it: with fewer than about 100 cases, or rare classes, where it covers the true
    value less often than it claims; see ``coverage``.
    """
    level = settings.level
    estimate, has_units = point_of(strata, measure, n_items, level)
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
        if not is_ratio:
            return replace(estimate, note=UNCHANGED)
        defined = np.array([value])
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    if settings.method == "bca":
        tails = _bca_tails(tails, strata, measure, defined, value)
    low, high = np.quantile(defined, tails)
    return replace(
        estimate,
        low=min(float(low), value),
        high=max(float(high), value),
        method=settings.method,
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
    values = measure(observed(strata) - np.concatenate([kinds.tables for kinds in strata]))
    defined = ~np.isnan(values)
    times = np.concatenate([kinds.counts for kinds in strata])[defined]
    values = values[defined]
    if not len(values):
        return 0.0
    distance = np.average(values, weights=times) - values
    below = float((times * distance**2).sum())
    return float((times * distance**3).sum()) / (6 * below**1.5) if below > 1e-30 else 0.0
