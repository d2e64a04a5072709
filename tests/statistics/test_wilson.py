"""The Wilson interval against printed values, another library, its own laws and its coverage."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from apbjudge.statistics import wilson

Z2 = 1.959963984540054**2
LEVELS = st.floats(0.5, 0.999)


@st.composite
def counts(draw: st.DrawFn) -> tuple[int, int]:
    n = draw(st.integers(1, 10**6))
    return draw(st.one_of(st.just(0), st.just(n), st.integers(0, n))), n


# Newcombe, Statistics in Medicine 17 (1998) 857, table I, method 3.
@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_newcombe_s_printed_intervals_come_out(k: int, n: int, low: float, high: float) -> None:
    assert wilson(k, n) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize("n", [1, 2, 7, 100, 10**6])
def test_at_the_ends_the_interval_is_what_one_gets_by_hand(n: int) -> None:
    assert wilson(0, n) == (0.0, pytest.approx(Z2 / (n + Z2), rel=1e-12))
    assert wilson(n, n) == (pytest.approx(n / (n + Z2), rel=1e-12), 1.0)


def test_one_of_two_by_hand() -> None:
    half = (Z2 * (0.125 + Z2 / 16)) ** 0.5 / (1 + Z2 / 2)
    assert wilson(1, 2) == pytest.approx((0.5 - half, 0.5 + half), rel=1e-12)


def test_fractional_successes_lie_between_their_neighbours() -> None:
    below, between, above = wilson(3, 9), wilson(3.6, 9), wilson(4, 9)
    assert below[0] < between[0] < above[0]
    assert below[1] < between[1] < above[1]


@settings(deadline=None, max_examples=100)
@given(counts(), LEVELS)
def test_agrees_with_statsmodels(count: tuple[int, int], level: float) -> None:
    k, n = count
    expected = proportion_confint(k, n, alpha=1 - level, method="wilson")
    assert wilson(k, n, level=level) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@settings(deadline=None, max_examples=100)
@given(counts(), LEVELS)
@example((1, 10**6), 0.5)
@example((10**6 - 1, 10**6), 0.5)
def test_lies_within_0_and_1_around_the_share_and_has_width(
    count: tuple[int, int], level: float
) -> None:
    k, n = count
    low, high = wilson(k, n, level=level)
    assert 0 <= low <= k / n <= high <= 1
    assert low < high


@settings(deadline=None, max_examples=100)
@given(counts(), LEVELS)
def test_successes_and_failures_mirror_each_other(count: tuple[int, int], level: float) -> None:
    k, n = count
    low, high = wilson(k, n, level=level)
    assert wilson(n - k, n, level=level) == pytest.approx((1 - high, 1 - low), abs=1e-12)


@settings(deadline=None, max_examples=100)
@given(counts(), st.floats(0.5, 0.98), st.floats(0.001, 0.019))
def test_more_confidence_and_fewer_trials_never_narrow_it(
    count: tuple[int, int], level: float, more: float
) -> None:
    k, n = count
    low, high = wilson(k, n, level=level)
    surer = wilson(k, n, level=level + more)
    fewer = wilson(k / 2, n / 2, level=level)
    assert surer[1] - surer[0] > high - low
    assert fewer[1] - fewer[0] > high - low


@pytest.mark.parametrize(
    ("k", "n", "level"),
    [
        (0, 0, 0.95),
        (-1, 5, 0.95),
        (6, 5, 0.95),
        (1, -5, 0.95),
        (float("nan"), 5, 0.95),
        (1, float("nan"), 0.95),
        (1, 5, 0.0),
        (1, 5, 1.0),
        (1, 5, 95),
        (1, 5, float("nan")),
    ],
)
def test_impossible_input_is_named(k: float, n: float, level: float) -> None:
    with pytest.raises(ValueError, match=rf"wilson: .*k={k} n={n} level={level}"):
        wilson(k, n, level=level)


def exact_coverage(p: float, n: int) -> float:
    """Probability that the 95 % interval of a binomial count holds its parameter."""
    return sum(
        comb(n, k) * p**k * (1 - p) ** (n - k)
        for k in range(n + 1)
        if wilson(k, n)[0] <= p <= wilson(k, n)[1]
    )


@pytest.mark.parametrize("n", [30, 100])
def test_true_shares_are_covered_as_often_as_claimed(n: int) -> None:
    coverages = [exact_coverage(p / 50, n) for p in range(2, 49)]
    assert sum(coverages) / len(coverages) == pytest.approx(0.95, abs=0.006)
    assert min(coverages) > 0.91
