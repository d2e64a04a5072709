"""Ratios of totals over whole runs: their intervals, and the difference of two of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.regression.linear_model import OLS, WLS

from apbjudge.statistics.estimates import Array
from apbjudge.statistics.paired import compare_ratios
from apbjudge.statistics.proportions import ratio_of_sums
from apbjudge.statistics.sample import Sample

COUNTS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30)), min_size=3, max_size=40)


def arrays(rows: list[tuple[int, int]]) -> tuple[Array, Array]:
    return np.array([float(a) for a, _ in rows]), np.array([float(b) for _, b in rows])


@given(COUNTS)
def test_a_ratio_has_the_value_and_error_of_weighted_least_squares(
    rows: list[tuple[int, int]],
) -> None:
    """Sum over sum is the weighted mean of the ratios; its error is the HC1 one."""
    above, below = arrays(rows)
    estimate = ratio_of_sums(above, below, Sample())
    fit = WLS(above / below, np.ones(len(rows)), weights=below).fit(cov_type="HC1")
    assert estimate.value == pytest.approx(fit.params[0], abs=1e-9)
    if estimate.method == "t-ratio" and estimate.high is not None:
        half = estimate.high - above.sum() / below.sum()
        assert half >= 1.959964 * fit.bse[0] * (1 - 1e-6)  # Student's t is never narrower


def test_counts_are_never_below_0_and_rewards_may_be() -> None:
    few = ratio_of_sums(np.array([0.0, 1.0, 30.0]), np.ones(3), Sample())
    assert few.low == 0.0
    below = ratio_of_sums(np.array([-1.0, 1.0, 30.0]), np.ones(3), Sample())
    assert below.low is not None
    assert below.low < 0


def test_ratios_without_spread_or_rows_have_no_interval() -> None:
    same = ratio_of_sums(np.full(5, 2.0), np.ones(5), Sample())
    assert (same.value, same.low, same.method) == (2.0, None, "no-spread")
    assert ratio_of_sums(np.zeros(0), np.zeros(0), Sample()).value is None
    one = ratio_of_sums(np.array([3.0]), np.array([2.0]), Sample())
    assert (one.value, one.low, one.note) == (1.5, None, "one cluster shows no spread")


@pytest.mark.slow
def test_intervals_of_ratios_cover_what_they_claim() -> None:
    """Searches per call of 40 runs with a common difficulty: 95 % intervals, 2,000 samples."""
    rng, hits = np.random.default_rng(5), 0
    for _ in range(2000):
        hardness = rng.gamma(2.0, 1.0, 40)
        calls = 1 + rng.poisson(4 * hardness)
        searches = rng.poisson(6 * hardness)
        estimate = ratio_of_sums(searches.astype(float), calls.astype(float), Sample())
        true = 12 / 9  # E searches = 6 * 2, E calls = 1 + 4 * 2
        hits += estimate.low is not None and estimate.low <= true <= (estimate.high or 0)
    assert 0.925 <= hits / 2000 <= 0.975


@given(COUNTS, st.integers(0, 1000))
def test_means_that_differ_have_the_error_of_the_paired_differences(
    rows: list[tuple[int, int]], seed: int
) -> None:
    first, _ = arrays(rows)
    second = np.random.default_rng(seed).permutation(first) + np.arange(len(first))
    ones = np.ones(len(first))
    found = compare_ratios("mean", (first, ones), (second, ones))
    fit = OLS(first - second, ones).fit()
    assert found.difference.value == pytest.approx(fit.params[0], abs=1e-9)
    if found.detectable is not None:  # (1.96 + 0.84) standard errors
        assert found.detectable / 2.801585 == pytest.approx(fit.bse[0], rel=1e-4)


def test_a_difference_of_bounded_ratios_has_an_interval_within_its_range() -> None:
    ones = np.ones(3)
    first, second = (np.array([1.0, 1.0, 0.0]), ones), (np.zeros(3), ones)
    free = compare_ratios("r", first, second)
    rates = compare_ratios("r", first, second, bounds=(0.0, 1.0))
    grades = compare_ratios("r", first, second, bounds=(0.0, 1.5))
    assert (rates.difference.low, rates.difference.high) == (free.difference.low, 1.0)
    assert (free.difference.high or 0) > (grades.difference.high or 0) == 1.5
    assert rates.p_value == free.p_value
    mirrored = compare_ratios("r", second, first, bounds=(0.0, 1.0)).difference
    assert (mirrored.low, -(mirrored.high or 0)) == (-1.0, free.difference.low)


def test_items_without_a_value_in_one_run_count_in_neither() -> None:
    nan = float("nan")
    one = np.array([1.0, nan, 3.0, 2.0]), np.array([1.0, 1.0, 2.0, 1.0])
    other = np.array([2.0, 5.0, nan, 1.0]), np.array([1.0, 1.0, 1.0, 1.0])
    found = compare_ratios("r", one, other)
    assert found.difference.n_items == 2
    assert (found.first.value, found.second.value) == (1.5, 1.5)
    empty = compare_ratios("r", (np.full(3, nan), np.ones(3)), (np.ones(3), np.ones(3)))
    assert (empty.difference.value, empty.difference.n_items) == (None, 0)
