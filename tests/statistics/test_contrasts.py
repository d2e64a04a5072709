"""Differences between parts of a sample: Newcombe's examples, laws, coverage, and no data."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from statsmodels.stats.proportion import confint_proportions_2indep

from apbjudge.statistics.differences import Contrast, part_difference
from apbjudge.statistics.sample import Sample
from tests.statistics.builders import ends, width

TRIALS = st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def rates(k1: int, n1: int, k2: int, n2: int) -> tuple[np.ndarray, np.ndarray]:
    """Items of two parts, 1 for a success; and which are of the first part."""
    values = np.concatenate([np.arange(n1) < k1, np.arange(n2) < k2]).astype(float)
    return values, np.arange(n1 + n2) < n1


def of_parts(values: np.ndarray, first: np.ndarray, sample: Sample | None = None) -> Contrast:
    return part_difference(values, first, ~first, sample or Sample())


@given(TRIALS, TRIALS, st.sampled_from([0.8, 0.95, 0.99]))
def test_parts_of_independent_items_have_statsmodels_interval(
    one: tuple[int, int], other: tuple[int, int], level: float
) -> None:
    values, first = rates(*one, *other)
    result = part_difference(values, first, ~first, Sample(), level=level)
    reference = confint_proportions_2indep(*one, *other, method="newcomb", alpha=1 - level)
    assert ends(result) == pytest.approx(reference, abs=1e-9)
    assert result.estimate.value == pytest.approx(one[0] / one[1] - other[0] / other[1])
    assert result.estimate.n_items == result.estimate.n_clusters == one[1] + other[1]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.integers(0, 6)), min_size=6),
    st.integers(0, 2**32 - 1),
)
def test_order_and_names_of_clusters_do_not_matter_and_sides_swap(
    rows: list[tuple[int, bool, int]], seed: int
) -> None:
    values, first, clusters = (np.array(column) for column in zip(*rows, strict=True))
    values, order = values / 5, np.random.default_rng(seed).permutation(len(rows))
    result = of_parts(values, first, Sample(clusters=clusters))
    again = of_parts(values[order], first[order], Sample(clusters=100 - clusters[order]))
    swapped = of_parts(values, ~first, Sample(clusters=clusters))
    if result.estimate.low is None:
        assert (again.estimate.low, swapped.estimate.low) == (None, None)
        assert result.estimate.note
        return
    low, high = ends(result)
    assert -1 <= low <= (result.estimate.value or 0) <= high <= 1
    assert ends(again) == pytest.approx((low, high), abs=1e-9)
    assert ends(swapped) == pytest.approx((-high, -low), abs=1e-9)


def test_two_measurements_of_the_same_cases_have_the_error_of_their_differences() -> None:
    rng = np.random.default_rng(0)
    one = (rng.random(200) < 0.5).astype(float)
    other = np.where(np.arange(200) % 20 == 0, 1 - one, one)
    cases = Sample(clusters=np.tile(np.arange(200), 2))
    result = of_parts(np.concatenate([one, other]), np.arange(400) < 200, cases).estimate
    error = (one - other).std(ddof=1) / sqrt(200)
    assert width(result) == pytest.approx(2 * 1.972 * error, rel=0.05)


def coverage(n1: int, n2: int, p1: float, p2: float) -> float:
    """Chance that the interval holds the difference, over all outcomes of independent items."""
    covered = total = 0.0
    for k1 in range(n1 + 1):
        for k2 in range(n2 + 1):
            weight = float(binom.pmf(k1, n1, p1) * binom.pmf(k2, n2, p2))
            if weight > 1e-5:
                low, high = ends(of_parts(*rates(k1, n1, k2, n2)))
                covered += weight * (low <= p1 - p2 + 1e-12 and p1 - p2 - 1e-12 <= high)
                total += weight
    return covered / total


@pytest.mark.parametrize(
    ("n1", "n2", "p1", "p2"), [(10, 30, 0.5, 0.5), (20, 100, 0.9, 0.9), (30, 60, 0.95, 0.8)]
)
def test_intervals_cover_whatever_the_sizes(n1: int, n2: int, p1: float, p2: float) -> None:
    assert 0.935 <= coverage(n1, n2, p1, p2) <= 0.985


# Little or no data -------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 1.0)])
def test_sides_without_items_units_or_spread(bounds: tuple[float, float]) -> None:
    def difference(*counts: int, sample: Sample | None = None) -> Contrast:
        values, first = rates(*counts)
        return part_difference(values, first, ~first, sample or Sample(), bounds=bounds)

    empty = difference(0, 0, 0, 5)
    assert (empty.estimate.value, empty.detectable) == (None, None)
    assert empty.estimate.note == "one side has no items"
    single = difference(0, 1, 2, 6, sample=Sample(clusters=np.array([0, 1, 1, 1, 1, 1, 1])))
    assert single.estimate.value == pytest.approx(-1 / 3)
    assert (single.estimate.low, single.estimate.high, single.detectable) == (None, None, None)
    assert single.estimate.note.startswith("one side has no interval: ")
    alike = difference(40, 40, 60, 60)
    assert alike.estimate.value == 0
    assert ends(alike)[0] < -0.02 < 0.02 < ends(alike)[1]
    assert (alike.detectable or 0) > 0.05
