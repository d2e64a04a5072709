"""The cluster bootstrap: closed forms, scipy, laws; and no rows, one case, or no spread."""

from __future__ import annotations

import numpy as np
import pytest

from apbjudge.statistics import Sample, cluster_bootstrap, ratio
from apbjudge.statistics.estimates import Array, Ids


def mean(sums: Array) -> Array:
    return sums[..., 0] / sums[..., 1]


def by(cases: Ids) -> Sample:
    return Sample(clusters=cases)


def test_two_cases_give_the_quantiles_that_can_be_counted() -> None:
    """Means of two draws of {0, 1} are 0, 1/2 and 1 with probabilities 1/4, 1/2 and 1/4."""
    columns, cases = np.array([[0.0, 0.5], [0.0, 0.5], [1.0, 1.0]]), np.array([1, 1, 2])
    wide = cluster_bootstrap(columns, by(cases), mean, n_items=3, level=0.95)
    narrow = cluster_bootstrap(columns, by(cases), mean, n_items=3, level=0.3)
    assert (wide.low, wide.value, wide.high) == (0.0, 0.5, 1.0)
    assert (wide.n_items, wide.n_clusters, wide.level) == (3, 2, 0.95)
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


@pytest.mark.parametrize(
    ("values", "cases"),
    [([0.8] * 4, [1, 1, 1, 2]), ([0.2, 0.4, 0.6, 0.6, 0.4, 0.2], [1, 1, 1, 2, 2, 2])],
)
def test_equal_means_whose_sums_are_rounded_differently_show_no_spread(
    values: list[float], cases: list[int]
) -> None:
    estimate = ratio(np.array(values), np.ones(len(values)), by(np.array(cases)))
    assert estimate.value == pytest.approx(np.mean(values))
    assert (estimate.low, estimate.high, estimate.method) == (None, None, "no-spread")


def test_without_rows_there_is_neither_value_nor_interval() -> None:
    empty = ratio(np.zeros(0), np.zeros(0), by(np.zeros(0)))
    assert (empty.value, empty.low, empty.n_items, empty.method) == (None, None, 0, "none")
