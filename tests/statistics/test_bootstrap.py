"""The cluster bootstrap: closed forms, scipy, laws; and no rows, one case, or no spread."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from apbjudge.statistics import Estimate, Sample, bounded, cluster_bootstrap, ratio, share, wilson
from apbjudge.statistics.estimates import Array, Ids


def mean(sums: Array) -> Array:
    return sums[..., 0] / sums[..., 1]


def rate(hits: Ids, cases: Ids | None) -> Estimate:
    return share(hits == 1, np.ones(len(hits), dtype=bool), Sample(clusters=cases))


def bounded_mean(values: Array, cases: Ids | None) -> Estimate:
    return bounded(values, Sample(clusters=cases))


def by(cases: Ids) -> Sample:
    return Sample(clusters=cases)


def array(*values: float) -> Array:
    return np.array(values, dtype=float)


def ends(estimate: Estimate) -> tuple[float | None, float | None]:
    return estimate.low, estimate.high


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
        n_resamples=5_000,
        rng=8,
    ).confidence_interval
    ours = ratio(above, below, by(cases), level=0.9)
    tolerance = 0.08 * (theirs.high - theirs.low)
    assert ours.value == pytest.approx(above.sum() / below.sum(), rel=1e-9)
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs), abs=tolerance)
    assert (ours.n_items, ours.n_clusters, ours.level) == (400, len(np.unique(cases)), 0.9)


def test_two_cases_give_the_quantiles_that_can_be_counted() -> None:
    """Means of two draws of {0, 1} are 0, 1/2 and 1 with probabilities 1/4, 1/2 and 1/4."""
    columns, cases = np.array([[0.0, 1.0], [1.0, 1.0]]), np.array([1, 2])
    wide = cluster_bootstrap(columns, by(cases), mean, n_items=2, level=0.95)
    narrow = cluster_bootstrap(columns, by(cases), mean, n_items=2, level=0.3)
    assert (wide.low, wide.value, wide.high) == (0.0, 0.5, 1.0)
    assert (narrow.low, narrow.value, narrow.high) == (0.5, 0.5, 0.5)


def test_all_resamples_are_drawn_a_bounded_number_at_a_time() -> None:
    """So memory stays flat when every case is different from every other."""
    drawn: list[int] = []

    def watched(sums: Array) -> Array:
        if sums.ndim == 2:
            drawn.append(len(sums))
        return mean(sums)

    columns = np.stack([np.arange(5000.0), np.ones(5000)], axis=1)
    cluster_bootstrap(columns, by(np.arange(5000)), watched, n_items=5000, n_resamples=2000)
    assert sum(drawn) == 2000
    assert max(drawn) * 5000 <= 4_000_000


def test_grades_added_up_in_another_order_give_the_same_interval() -> None:
    """0.2 + 0.4 + 0.6 and 0.6 + 0.4 + 0.2 differ in the last bit, which must not move a draw."""
    levels = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    grades = np.random.default_rng(0).choice(levels, size=(25, 5))
    ones, cases = np.ones(125), np.repeat(np.arange(25), 5)
    first, second = (ratio(g.ravel(), ones, by(cases)) for g in (grades, grades[:, ::-1]))
    assert (first.low, first.high) == pytest.approx((second.low, second.high), abs=1e-9)


# Little or no data -------------------------------------------------------------------------------

EMPTY = array()


@pytest.mark.parametrize(
    "estimate",
    [rate(EMPTY, EMPTY), ratio(EMPTY, EMPTY, by(EMPTY)), bounded_mean(EMPTY, EMPTY)],
    ids=["rate", "ratio", "bounded_mean"],
)
def test_without_rows_there_is_neither_value_nor_interval(estimate: Estimate) -> None:
    assert (estimate.value, *ends(estimate), estimate.method) == (None, None, None, "none")
    assert (estimate.n_items, estimate.n_clusters, estimate.n_resamples) == (0, 0, 0)


@pytest.mark.parametrize(
    ("values", "cases"),
    [
        pytest.param(array(4, 4, 4), array(1, 2, 2), id="cases of different size"),
        pytest.param(array(0.8, 0.8, 0.8, 0.8), array(1, 1, 1, 2), id="sums rounded differently"),
        pytest.param(
            array(0.2, 0.4, 0.6, 0.6, 0.4, 0.2), array(1, 1, 1, 2, 2, 2), id="order within a case"
        ),
    ],
)
def test_equal_means_of_unequal_sums_show_no_spread_either(values: Array, cases: Array) -> None:
    estimate = ratio(values, np.ones(len(values)), by(cases))
    assert estimate.value == pytest.approx(values.mean())
    assert ends(estimate) == (None, None)
    assert estimate.method == "no-spread"


@pytest.mark.parametrize("grade", [0.0, 0.6])
@pytest.mark.parametrize("cases", [np.arange(6), np.array([0, 1, 1, 2, 2, 2])])
def test_equal_grades_are_off_by_the_cases_that_may_be_unseen(grade: float, cases: Array) -> None:
    estimate = bounded_mean(np.full(6, grade), cases)
    n_cases = len(np.unique(cases))
    assert estimate.value == pytest.approx(grade)
    unseen = wilson(0, n_cases)[1]
    expected = grade * (1 - unseen), grade * (1 - unseen) + unseen
    assert ends(estimate) == pytest.approx(expected, abs=1e-9)
    method = "wilson" if grade == 0.0 and n_cases == 6 else "wilson-clusters"
    assert (estimate.method, estimate.n_clusters) == (method, n_cases)


def test_no_figure_of_extreme_input_is_nan_or_infinite() -> None:
    estimate = ratio(array(1e300, 1e-300, 0.0), array(1, 1, 1), by(array(1, 2, 3)))
    assert estimate.value is not None
    assert estimate.low is not None
    assert estimate.high is not None
    assert all(map(math.isfinite, (estimate.value, estimate.low, estimate.high)))
