"""What there is to say when there are no rows, one case, or no spread."""

from __future__ import annotations

import math

import numpy as np
import pytest

from apbjudge.statistics import Estimate, Sample, bounded, cluster_bootstrap, ratio, share, wilson
from apbjudge.statistics.estimates import Array


def array(*values: float) -> Array:
    return np.array(values, dtype=float)


def rate(hits: Array, cases: Array) -> Estimate:
    return share(hits == 1, np.ones(len(hits), dtype=bool), Sample(clusters=cases))


def bounded_mean(values: Array, cases: Array) -> Estimate:
    return bounded(values, Sample(clusters=cases))


def ends(estimate: Estimate) -> tuple[float | None, float | None]:
    return estimate.low, estimate.high


EMPTY = array()


@pytest.mark.parametrize(
    "estimate",
    [rate(EMPTY, EMPTY), ratio(EMPTY, EMPTY, EMPTY), bounded_mean(EMPTY, EMPTY)],
    ids=["rate", "ratio", "bounded_mean"],
)
def test_without_rows_there_is_neither_value_nor_interval(estimate: Estimate) -> None:
    assert (estimate.value, *ends(estimate), estimate.method) == (None, None, None, "none")
    assert (estimate.n_items, estimate.n_clusters, estimate.n_resamples) == (0, 0, 0)


def test_a_ratio_with_nothing_below_has_no_value() -> None:
    estimate = ratio(array(1, 2), array(0, 0), array(1, 2))
    assert (estimate.value, *ends(estimate), estimate.n_items) == (None, None, None, 2)


def test_one_case_has_a_value_and_no_interval() -> None:
    estimate = ratio(array(3, 4), array(1, 1), array(7, 7))
    assert (estimate.value, *ends(estimate)) == (3.5, None, None)
    assert (estimate.method, estimate.n_items, estimate.n_clusters) == ("none", 2, 1)


def test_equal_cases_have_a_value_and_no_interval() -> None:
    estimate = ratio(array(4, 4, 4), array(1, 1, 1), array(1, 2, 3))
    assert (estimate.value, *ends(estimate)) == (4.0, None, None)
    assert (estimate.method, estimate.n_clusters) == ("no-spread", 3)
    assert (estimate.n_resamples, estimate.seed) == (0, None)


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
    estimate = ratio(values, np.ones(len(values)), cases)
    assert estimate.value == pytest.approx(values.mean())
    assert ends(estimate) == (None, None)
    assert estimate.method == "no-spread"


def test_a_difference_that_is_zero_in_every_case_shows_no_spread() -> None:
    columns = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 1.0], [2.0, 2.0, 2.0]])
    estimate = cluster_bootstrap(
        columns,
        array(1, 2, 3),
        lambda sums: (sums[..., 0] - sums[..., 1]) / sums[..., 2],
        n_items=4,
    )
    assert (estimate.value, *ends(estimate), estimate.method) == (0.0, None, None, "no-spread")


@pytest.mark.parametrize("grade", [0.0, 0.2, 0.6, 0.8, 1.0])
@pytest.mark.parametrize(
    "cases", [np.arange(6), np.repeat(np.arange(3), 2), np.array([0, 1, 1, 2, 2, 2])]
)
def test_equal_grades_get_a_wilson_interval_over_cases(grade: float, cases: Array) -> None:
    estimate = bounded_mean(np.full(6, grade), cases)
    n_cases = len(np.unique(cases))
    assert estimate.value == pytest.approx(grade)
    assert ends(estimate) == pytest.approx(wilson(grade * n_cases, n_cases), abs=1e-9)
    is_rate = grade in {0.0, 1.0} and n_cases == 6
    assert (estimate.method, estimate.n_clusters) == (
        "wilson" if is_rate else "wilson-clusters",
        n_cases,
    )


@pytest.mark.parametrize("cases", [array(1, 1, 1, 1), array(1, 1, 2, 2)])
def test_a_split_rate_without_spread_between_cases_claims_no_narrow_interval(cases: Array) -> None:
    estimate = rate(array(1, 0, 1, 0), cases)
    assert estimate.value == 0.5
    if len(set(cases)) == 1:
        assert ends(estimate) == (None, None)
    else:
        assert estimate.low <= wilson(1, 2)[0] < wilson(1, 2)[1] <= estimate.high


def test_no_figure_of_extreme_input_is_nan_or_infinite() -> None:
    estimate = ratio(array(1e300, 1e-300, 0.0), array(1, 1, 1), array(1, 2, 3))
    assert estimate.value is not None
    assert estimate.low is not None
    assert estimate.high is not None
    assert all(map(math.isfinite, (estimate.value, estimate.low, estimate.high)))
