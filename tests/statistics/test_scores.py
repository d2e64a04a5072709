"""Measures of scores against scipy, krippendorff and published values."""

from __future__ import annotations

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from apbjudge.statistics.sample import METHODS, IntervalSettings, Method, Sample
from apbjudge.statistics.scores import fisher_correlations, mean_scores, score_coefficients
from tests.statistics.builders import ends, width


def drawn(seed: int, n: int, places: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    human = rng.random(n).round(places)
    return np.clip(human + rng.normal(0.1, 0.2, n), 0, 1).round(places), human


@pytest.mark.parametrize(("n", "places"), [(12, 1), (80, 1), (80, 4)])
def test_coefficients_are_those_of_other_libraries(n: int, places: int) -> None:
    judge, human = drawn(n, n, places)
    result = score_coefficients(judge, human, Sample())
    together = np.stack([judge, human])
    expected = {
        "Pearson": stats.pearsonr(judge, human)[0],
        "Spearman": stats.spearmanr(judge, human)[0],
        "score alpha (interval)": krippendorff.alpha(together, level_of_measurement="interval"),
    }
    assert {name: result[name].value for name in expected} == pytest.approx(expected)


def test_icc_by_analysis_of_variance() -> None:
    """Judges 1 and 2 of Shrout & Fleiss 1979, table 2; mean squares of the two-way layout."""
    first, second = np.array([9.0, 6, 8, 7, 10, 6]), np.array([2.0, 1, 4, 1, 5, 2])
    both = np.stack([first, second], axis=1)
    rows, columns, mean = both.mean(axis=1), both.mean(axis=0), both.mean()
    between = 2 * ((rows - mean) ** 2).sum() / 5
    raters = 6 * ((columns - mean) ** 2).sum()
    error = ((both - rows[:, None] - columns + mean) ** 2).sum() / 5
    expected = (between - error) / (between + error + 2 * (raters - error) / 6)
    result = score_coefficients(first, second, Sample())["ICC"]
    assert result.value == pytest.approx(expected)


def test_missing_scores_do_not_count_and_none_at_all_has_a_reason() -> None:
    judge, human = np.array([0.5, np.nan, 1.0, 0.2]), np.array([0.4, 0.1, np.nan, 0.3])
    means = mean_scores(judge, human, Sample(), level=0.95)
    assert means["score MAE"].n_items == 2
    assert means["score MAE"].value == pytest.approx(0.1)
    assert means["score agreement"].value == 0
    assert means["score bias"].value == pytest.approx(0.0)
    right = mean_scores(np.zeros(30), np.zeros(30), Sample(), level=0.95)
    least, most = ends(right["score bias"])
    assert (-least, most) == pytest.approx((ends(right["score MAE"])[1],) * 2)
    empty = score_coefficients(judge[1:2], human[1:2], Sample())
    assert {of.note for of in empty.values()} == {"no item that both scored"}
    same = score_coefficients(np.ones(5), np.ones(5), Sample())
    assert {of.value for of in same.values()} == {None}


@pytest.mark.parametrize("method", METHODS)
def test_rows_in_clusters_have_wider_intervals(method: Method) -> None:
    judge, human = drawn(3, 20)
    settings = IntervalSettings(method=method, n_resamples=500)
    times = np.repeat(np.arange(20), 5)
    alone = score_coefficients(judge[times], human[times], Sample(), settings)
    together = score_coefficients(judge[times], human[times], Sample(clusters=times), settings)
    for name, of in together.items():
        assert of.value == pytest.approx(alone[name].value)
        assert width(of) > 1.5 * width(alone[name])


def test_intervals_cover() -> None:
    """95 % intervals of Pearson, ICC and alpha hold the true value in about 95 % of samples."""
    rng = np.random.default_rng(0)
    truth = 0.8  # of standard normal ratings with the same mean and this correlation
    hits = dict.fromkeys(("Pearson", "ICC", "score alpha (interval)", "Spearman"), 0)
    of_ranks = 6 / np.pi * np.arcsin(truth / 2)
    n_samples = 300
    for _ in range(n_samples):
        human = rng.normal(size=60)
        judge = truth * human + np.sqrt(1 - truth**2) * rng.normal(size=60)
        for name, of in score_coefficients(judge, human, Sample()).items():
            value = of_ranks if name == "Spearman" else truth
            hits[name] += (of.low or 0) <= value <= (of.high or 0)
    assert min(hits.values()) / n_samples > 0.91, hits


TABLE_3 = """
0 35.31 7.64 6.11 / .92 47.77 12.01 3.94 / 2.75 62.36 18.54 10.05 / 0 41.33 9.89 18.03
/ 18.96 59.67 19.20 21.47 / 63.08 65.57 25.34 8.27 / 77.06 91.47 27.41 .68
/ 52.19 85.29 25.16 2.94 / 3.07 71.25 9.22 51.71 / 51.90 72.92 20.65 6.28
"""
"""Accuracy, EGT, EDT and ITCR of ten models (arXiv:2606.22388, table 3)."""


@pytest.mark.parametrize(
    ("column", "expected"),
    [(2, (0.902, 0.63, 0.98)), (1, (0.781, 0.30, 0.95)), (3, (-0.443, -0.84, 0.26))],
)
def test_published_correlations_over_models(column: int, expected: tuple[float, ...]) -> None:
    table = np.array([row.split() for row in TABLE_3.split("/")], dtype=float)
    found = fisher_correlations(table[:, 0], table[:, column])["Pearson"]
    assert found.value == pytest.approx(expected[0], abs=5e-4)
    assert (found.low, found.high) == pytest.approx(expected[1:], abs=5e-3)
    assert found.n_items == 10


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), max_size=30))
def test_correlations_of_units_are_those_of_scipy(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs, dtype=float).reshape(-1, 2).T
    found = fisher_correlations(a, b)
    for name, reference in (("Pearson", stats.pearsonr), ("Spearman", stats.spearmanr)):
        estimate = found[name]
        if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
            assert (estimate.value, estimate.low) == (None, None)
            continue
        expected = reference(a, b)
        assert estimate.value == pytest.approx(expected.statistic, abs=1e-9)
        if estimate.low is None:
            assert len(a) < 4 or abs(expected.statistic) > 1 - 1e-9
        elif name == "Pearson":
            ends = expected.confidence_interval(0.95)
            assert (estimate.low, estimate.high) == pytest.approx((ends.low, ends.high))
        else:
            assert -1 <= estimate.low < (estimate.value or 0) < (estimate.high or 0) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.0, 0.6, 0.9])
@pytest.mark.parametrize("n", [6, 10])
def test_intervals_over_units_cover(rho: float, n: int) -> None:
    """Pearson's, of normal values, 4,000 draws; Spearman's, whose true value is 6/pi asin(r/2)."""
    rng = np.random.default_rng(n)
    truth = {"Pearson": rho, "Spearman": 6 / np.pi * np.arcsin(rho / 2)}
    covered = dict.fromkeys(truth, 0)
    for _ in range(4000):
        a = rng.normal(size=n)
        b = rho * a + np.sqrt(1 - rho * rho) * rng.normal(size=n)
        for name, metric in fisher_correlations(a, b).items():
            low, high = (-1, 1) if metric.low is None else (metric.low, metric.high or 0)
            covered[name] += low <= truth[name] <= high
    assert covered["Pearson"] / 4000 == pytest.approx(0.95, abs=0.015)
    assert covered["Spearman"] / 4000 > 0.90
