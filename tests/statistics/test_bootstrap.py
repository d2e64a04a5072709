"""The cluster bootstrap against closed forms, scipy, its own laws and its coverage."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from apbjudge.statistics import Estimate, Sample, bounded, cluster_bootstrap, ratio, share
from apbjudge.statistics.bootstrap import N_CASE_RESAMPLES as N_RESAMPLES
from apbjudge.statistics.estimates import SEED, Array, Ids


def mean(sums: Array) -> Array:
    return sums[..., 0] / sums[..., 1]


def rate(hits: Ids, cases: Ids | None) -> Estimate:
    return share(hits == 1, np.ones(len(hits), dtype=bool), Sample(clusters=cases))


def bounded_mean(values: Array, cases: Ids | None) -> Estimate:
    return bounded(values, Sample(clusters=cases))


def test_a_ratio_over_clusters_agrees_with_scipy_on_the_clusters_sums() -> None:
    rng = np.random.default_rng(7)
    cases = rng.integers(0, 50, size=400)
    below = rng.integers(1, 4, size=400).astype(float)
    above = below * rng.random(400) * (cases % 5)
    sums = [np.bincount(cases, weights=part) for part in (above, below)]
    theirs = stats.bootstrap(
        sums,
        lambda a, b, axis: a.sum(axis=axis) / b.sum(axis=axis),
        paired=True,
        vectorized=True,
        method="percentile",
        confidence_level=0.9,
        n_resamples=20_000,
        rng=8,
    ).confidence_interval
    ours = ratio(above, below, cases, level=0.9)
    tolerance = 0.05 * (theirs.high - theirs.low)
    assert ours.value == pytest.approx(above.sum() / below.sum(), rel=1e-9)
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs), abs=tolerance)
    assert (ours.n_items, ours.n_clusters, ours.level) == (400, len(np.unique(cases)), 0.9)


def test_two_cases_give_the_quantiles_that_can_be_counted() -> None:
    """Means of two draws of {0, 1} are 0, 1/2 and 1 with probabilities 1/4, 1/2 and 1/4."""
    columns, cases = np.array([[0.0, 1.0], [1.0, 1.0]]), np.array([1, 2])
    wide = cluster_bootstrap(columns, cases, mean, n_items=2, level=0.95)
    narrow = cluster_bootstrap(columns, cases, mean, n_items=2, level=0.3)
    assert (wide.low, wide.value, wide.high) == (0.0, 0.5, 1.0)
    assert (narrow.low, narrow.value, narrow.high) == (0.5, 0.5, 0.5)


def test_many_distinct_cases_agree_with_the_normal_interval() -> None:
    values = np.random.default_rng(9).normal(10, 3, size=3000)
    estimate = ratio(values, np.ones(3000), np.arange(3000))
    half = 1.96 * values.std() / 3000**0.5
    expected = (values.mean() - half, values.mean() + half)
    assert (estimate.low, estimate.high) == pytest.approx(expected, abs=0.15 * half)
    assert (estimate.n_resamples, estimate.seed) == (N_RESAMPLES, SEED)


def test_all_resamples_are_drawn_a_bounded_number_at_a_time() -> None:
    """So memory stays flat when every case is different from every other."""
    drawn: list[int] = []

    def watched(sums: Array) -> Array:
        if sums.ndim == 2:
            drawn.append(len(sums))
        return mean(sums)

    columns = np.stack([np.arange(5000.0), np.ones(5000)], axis=1)
    cluster_bootstrap(columns, np.arange(5000), watched, n_items=5000, n_resamples=2000)
    assert sum(drawn) == 2000
    assert max(drawn) * 5000 <= 4_000_000


def test_the_seed_decides_and_is_reported() -> None:
    values = np.random.default_rng(10).random(30)
    columns, cases = np.stack([values, np.ones(30)], axis=1), np.arange(30)

    def draw(seed: int) -> Estimate:
        return cluster_bootstrap(columns, cases, mean, n_items=30, seed=seed, n_resamples=500)

    assert draw(1) == draw(1)
    assert (draw(1).low, draw(1).high) != (draw(2).low, draw(2).high)
    assert (draw(2).seed, draw(2).n_resamples) == (2, 500)


@pytest.mark.parametrize("estimator", [rate, bounded_mean])
@pytest.mark.parametrize("values", [[1, 0, 0, 1, 1, 0, 1], [1, 1, 1], [0, 0], [1], []])
def test_without_cases_each_row_is_a_case_of_its_own(
    estimator: Callable[..., Estimate], values: list[float]
) -> None:
    rows = np.array(values, dtype=float)
    assert estimator(rows, None) == estimator(rows, np.arange(len(rows)))


@pytest.mark.parametrize("seed", range(5))
def test_grades_added_up_in_another_order_give_the_same_interval(seed: int) -> None:
    """0.2 + 0.4 + 0.6 and 0.6 + 0.4 + 0.2 differ in the last bit, which must not move a draw."""
    levels = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    grades = np.random.default_rng(seed).choice(levels, size=(25, 5))
    ones, cases = np.ones(125), np.repeat(np.arange(25), 5)
    first, second = (ratio(g.ravel(), ones, cases) for g in (grades, grades[:, ::-1]))
    assert (first.low, first.high) == pytest.approx((second.low, second.high), abs=1e-9)
