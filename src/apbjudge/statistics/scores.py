"""Scores of a judge against scores of humans, on a continuous scale rather than a few levels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import sqrt
from statistics import NormalDist

import numpy as np

from .bootstrap import Measure, draw
from .coded import CodedItems
from .estimates import CONFIDENCE_LEVEL, Array, Estimate, nothing
from .jackknife import measured
from .kinds import (
    HUMAN_SCORE,
    ICC,
    JUDGE_SCORE,
    PEARSON,
    SCORE_AGREEMENT,
    SCORE_ALPHA,
    SCORE_BIAS,
    SCORE_MAE,
    SPEARMAN,
)
from .metric import Metric, MetricKind, Metrics, by_name
from .proportions import bounded, share_of
from .sample import BY_FORMULA, IntervalSettings, Sample, unit_sums

MAX_PAIRS = 3000
"""Greatest number of distinct pairs of scores for which Spearman's coefficient has an interval:
each is left out once, and all are ranked again."""
MAX_CELLS = 5_000_000
"""Greatest number of resampled counts to rank at once; with more, the jackknife replaces a
bootstrap."""
_NONE = "no item that both scored"


def mean_scores(judge: Array, human: Array, sample: Sample, *, level: float) -> Metrics:
    """Mean scores and errors of a judge, over the items that both scored.

    Args:
        judge: Shape (n,), from 0 to 1; NaN where there is no score.
        human: Shape (n,), the same.
        sample: Sampling design of the items.
        level: Confidence level of intervals.

    Returns:
        ``score agreement`` (share of equal scores), ``score MAE``, ``score bias`` (judge less
        human), ``judge score`` and ``human score`` (means).
    """
    rows = ~(np.isnan(judge) | np.isnan(human))
    a, b, sample = judge[rows], human[rows], sample.take(np.flatnonzero(rows))
    if not len(a):
        kinds = (SCORE_AGREEMENT, SCORE_MAE, SCORE_BIAS, JUDGE_SCORE, HUMAN_SCORE)
        return by_name(kind.of(nothing(level, note=_NONE)) for kind in kinds)
    bias = bounded(a - b, sample, bounds=(-1.0, 1.0), level=level)
    return by_name(
        [
            SCORE_AGREEMENT.of(share_of(np.abs(a - b) < 1e-9, sample, level=level)),
            SCORE_MAE.of(bounded(np.abs(a - b), sample, level=level)),
            SCORE_BIAS.of(bias),
            JUDGE_SCORE.of(bounded(a, sample, level=level)),
            HUMAN_SCORE.of(bounded(b, sample, level=level)),
        ]
    )


def score_coefficients(
    judge: Array, human: Array, sample: Sample, settings: IntervalSettings = BY_FORMULA
) -> Metrics:
    """Coefficients of agreement and of correlation of two raters' scores.

    ``ICC``: absolute agreement of single ratings, two-way random effects (ICC(A,1), McGraw & Wong
    1996, doi:10.1037/1082-989X.1.1.30). ``score alpha (interval)``: Krippendorff's. ``Pearson`` and
    ``Spearman``: correlation, which a constant leniency of the judge does not lower.

    Args:
        judge: Shape (n,), NaN where there is no score.
        human: Shape (n,), the same.
        sample: Sampling design of the items; clusters and weights count.
        settings: Settings of the intervals; ``jeffreys`` has no prior here, so the jackknife is
            used.

    When not to use it: where one of the two nearly always gives the same score. All four then
    depend on the few items with another score.
    """
    rows = np.flatnonzero(~(np.isnan(judge) | np.isnan(human)))
    a, b, sample = judge[rows], human[rows], sample.take(rows)
    measures: Mapping[MetricKind, Measure] = {ICC: _icc, SCORE_ALPHA: _alpha, PEARSON: _pearson}
    if len(a) < 2:
        note = _NONE if not len(a) else "one item that both scored"
        none = nothing(settings.level, n_items=len(a), note=note)
        return by_name(kind.of(none) for kind in (*measures, SPEARMAN))
    a, b = a - b.mean(), b - b.mean()  # centred, so that sums of squares keep their digits
    estimate = _estimator(a, b, sample, settings)
    metrics = [kind.of(estimate(measure)) for kind, measure in measures.items()]
    return by_name([*metrics, spearman(a, b, sample, settings)])


def pearson(
    first: Array, second: Array, sample: Sample, settings: IntervalSettings = BY_FORMULA
) -> Estimate:
    """Pearson's correlation of values without gaps, shape (n,) each; see ``score_coefficients``.

    If one of the two is always 0 or 1, it is the point-biserial correlation.
    """
    if len(first) < 2:
        return nothing(settings.level, n_items=len(first), note="fewer than two rows")
    a, b = first - first.mean(), second - second.mean()
    return _estimator(a, b, sample, settings)(_pearson)


def _estimator(
    a: Array, b: Array, sample: Sample, settings: IntervalSettings
) -> Callable[[Measure], Estimate]:
    """Estimates functions of the sums of two columns and of their squares and products."""
    sums = np.stack([np.ones(len(a)), a, b, a * a, b * b, a * b], axis=1)
    strata = unit_sums(sums, sample)
    draws = None
    if settings.is_bootstrap:
        draws = draw(strata, n_resamples=settings.n_resamples, seed=settings.seed)

    def estimate(measure: Measure) -> Estimate:
        return measured(strata, measure, settings, n_items=len(a), draws=draws)

    return estimate


def spearman(judge: Array, human: Array, sample: Sample, settings: IntervalSettings) -> Metric:
    """Spearman's rank correlation, with mean ranks for ties, of scores without gaps."""
    pairs, codes = np.unique(np.stack([judge, human], axis=1), axis=0, return_inverse=True)
    columns = [_ranker(column) for column in pairs.T]

    def measure(counts: Array) -> Array:
        x, y = (ranks(counts) for ranks in columns)
        n = counts.sum(axis=-1)
        xm, ym = ((counts * of).sum(axis=-1) / n for of in (x, y))
        x, y = x - xm[..., None], y - ym[..., None]
        sxx, syy, sxy = ((counts * of).sum(axis=-1) for of in (x * x, y * y, x * y))
        return _correlation(sxx, syy, sxy)

    items = CodedItems(codes.ravel(), len(pairs), sample)
    if len(pairs) > MAX_PAIRS:
        value = float(measure(items.counts))
        note = f"no interval: more than {MAX_PAIRS} different pairs of scores"
        n = len(judge)
        estimate = nothing(settings.level, n_items=n, note=note)
        return SPEARMAN.of(replace(estimate, value=value, n_clusters=n))
    if len(pairs) * settings.n_resamples > MAX_CELLS and settings.is_bootstrap:
        settings = replace(settings, method="jackknife")
    return SPEARMAN.of(items.measure(measure, settings))


LEAST_UNITS = 4
"""Least number of units for Fisher's interval of a correlation."""


def fisher_correlations(first: Array, second: Array, *, level: float = CONFIDENCE_LEVEL) -> Metrics:
    """Pearson's and Spearman's correlation of a few independent units, with Fisher's interval.

    Spearman's interval has the variance of Bonett & Wright 2000 (doi:10.1007/BF02294183).

    Args:
        first: Shape (n,), a value of each unit.
        second: Shape (n,), the other value.
        level: Confidence level.

    Returns:
        ``Pearson`` and ``Spearman``; without a value if there are fewer than 3 units or one of the
        two is constant, without an interval if there are fewer than 4 units or the correlation is
        perfect.

    When not to use it: where units share cases or clusters, as items of a run may.
    """
    n = len(first)
    few = nothing(level, n_items=n, note=f"fewer than {LEAST_UNITS - 1} units")
    metrics: list[Metric] = []
    ranks = [_ranker(of)(np.ones(len(of))) for of in (first, second)] if n else [first, second]
    for kind, (a, b) in ((PEARSON, (first, second)), (SPEARMAN, ranks)):
        estimate = few
        if n >= LEAST_UNITS - 1 and not (np.ptp(a) > 0 and np.ptp(b) > 0):
            estimate = replace(few, note="one of the two does not vary")
        elif n >= LEAST_UNITS - 1:
            r = float(np.clip(np.corrcoef(a, b)[0, 1], -1.0, 1.0))
            estimate = replace(few, value=r, n_clusters=n, note=f"fewer than {LEAST_UNITS} units")
            if n >= LEAST_UNITS and abs(r) > 1 - 1e-12:
                estimate = replace(estimate, note="the correlation is perfect")
            elif n >= LEAST_UNITS:
                variance = (1 + r * r / 2 * (kind is SPEARMAN)) / (n - 3)
                half = NormalDist().inv_cdf(0.5 + level / 2) * sqrt(variance)
                low, high = np.tanh(np.arctanh(r) + np.array([-half, half])).tolist()
                estimate = replace(estimate, low=low, high=high, method="fisher", note="")
        metrics.append(kind.of(estimate))
    return by_name(metrics)


def _ranker(values: Array) -> Callable[[Array], Array]:
    """A function from counts of the m values, shape (..., m), to mean ranks of that shape."""
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(values[order]) > 0))
    group = np.empty(len(values), dtype=np.int64)
    group[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(values))))

    def ranks(counts: Array) -> Array:
        of_group = np.add.reduceat(counts[..., order], starts, axis=-1)
        return (np.cumsum(of_group, axis=-1) - of_group / 2)[..., group]

    return ranks


def _centred(sums: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Number of items, difference of the means, and centred sums of squares and products."""
    n, a, b, aa, bb, ab = np.moveaxis(sums, -1, 0)
    return n, (a - b) / n, aa - a * a / n, bb - b * b / n, ab - a * b / n


def _correlation(sxx: Array, syy: Array, sxy: Array) -> Array:
    product = sxx * syy
    return np.clip(sxy / np.sqrt(np.where(product > 1e-24, product, np.nan)), -1.0, 1.0)


def _pearson(sums: Array) -> Array:
    _, _, sxx, syy, sxy = _centred(sums)
    return _correlation(sxx, syy, sxy)


def _icc(sums: Array) -> Array:
    n, difference, sxx, syy, sxy = _centred(sums)
    between = (sxx + syy + 2 * sxy) / 2 / (n - 1)  # mean squares of items, raters and the rest
    error = (sxx + syy - 2 * sxy) / 2 / (n - 1)
    raters = n * difference**2 / 2
    below = between + error + 2 * (raters - error) / n
    return (between - error) / np.where(below > 1e-24, below, np.nan)


def _alpha(sums: Array) -> Array:
    n, difference, sxx, syy, sxy = _centred(sums)
    observed = (sxx + syy - 2 * sxy) / n + difference**2
    expected = 2 * (sxx + syy + n * difference**2 / 2) / (2 * n - 1)
    return 1 - observed / np.where(expected > 1e-24, expected, np.nan)
