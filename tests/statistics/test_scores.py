"""Measures of scores against scipy, krippendorff and published values."""

from __future__ import annotations

import krippendorff
import numpy as np
import pytest
from scipy import stats

from apbjudge.statistics.sample import METHODS, IntervalSettings, Method, Sample
from apbjudge.statistics.scores import mean_scores, score_coefficients
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
