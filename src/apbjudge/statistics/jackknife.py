"""Intervals from leaving out one unit at a time, or from a bootstrap if the settings ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .bootstrap import UNCHANGED, Draws, Measure, bootstrap, draw, observed, point_of
from .estimates import CONFIDENCE_LEVEL, Estimate, t_quantile
from .proportions import score_interval
from .sample import IntervalSettings, Kinds, effective_df

UNDEFINED_WITHOUT_ONE = "leaving out one item leaves it undefined"


def measured(
    strata: Sequence[Kinds],
    measure: Measure,
    settings: IntervalSettings,
    *,
    n_items: int,
    bounds: tuple[float, float] | None = (-1.0, 1.0),
    draws: Draws | None = None,
) -> Estimate:
    """A measure of a count table: by ``bootstrap`` if the settings ask for it, or ``jackknife``.

    ``draws``: draws for these strata and settings, if several measures share them.
    """
    if not settings.is_bootstrap:
        return jackknife(strata, measure, n_items=n_items, level=settings.level, bounds=bounds)
    if draws is None and strata:
        draws = draw(strata, n_resamples=settings.n_resamples, seed=settings.seed)
    return bootstrap(strata, draws, measure, n_items=n_items, settings=settings)


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
        or when leaving out a unit changes nothing or leaves the measure without value.

    When not to use it: for medians and other quantiles, which are not smooth.
    """
    estimate, has_units = point_of(strata, measure, n_items, level)
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
    counts = observed(strata)
    changes: list[tuple[float, float, float]] = []
    for kinds in strata:
        if (n := kinds.n_units) < 2:
            continue
        # the rest of a stratum is scaled up to all of it, or the measure's weights would shift
        scale = n / (n - 1) if len(strata) > 1 else 1.0
        in_stratum = kinds.observed
        values = measure(counts - in_stratum + (in_stratum - kinds.tables) * scale)
        squares = (values - np.average(values, weights=kinds.counts)) ** 2
        second, fourth = kinds.counts * squares, kinds.counts * squares**2
        changes.append((n, float(second.sum()), float(fourth.sum())))
    variance = sum((n - 1) / n * second for n, second, _ in changes)
    if np.isnan(variance):
        return variance, 0.0
    sizes, squares, fourths = np.array(changes).reshape(-1, 3).T
    return variance, effective_df(sizes, squares, fourths)
