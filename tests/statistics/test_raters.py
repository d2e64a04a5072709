"""Humans among themselves: the krippendorff package, printed values, laws, and gaps."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import combinations

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import cohen_kappa_score

from apbjudge.statistics.measures import calibrate
from apbjudge.statistics.raters import (
    SHOWN,
    alternative_annotator_test,
    between_raters,
    ratings_annotator_test,
)
from apbjudge.statistics.ratings import LEVELS, Ratings
from apbjudge.statistics.sample import IntervalSettings, Sample
from tests.statistics.builders import ratings

VALUES = np.asarray(LEVELS)
FEW = IntervalSettings(n_resamples=200)


def raters(correct: np.ndarray, grade: np.ndarray | None = None) -> list[Ratings]:
    """One of each column; -1 where one said nothing."""
    return [
        ratings(correct[:, i], None if grade is None else grade[:, i])
        for i in range(correct.shape[1])
    ]


def reference_alpha(codes: np.ndarray, level: str) -> float | None:
    """Of the krippendorff package; None where it has none."""
    used = codes[(codes >= 0).sum(axis=1) > 1]
    if len(np.unique(used[used >= 0])) < 2:
        return None
    numbers = np.where(codes < 0, np.nan, codes.astype(float)).T
    return float(krippendorff.alpha(numbers, level_of_measurement=level))


def codes(highest: int) -> st.SearchStrategy[np.ndarray]:
    shapes = st.tuples(st.integers(1, 25), st.integers(2, 4))
    return hnp.arrays(np.int64, shapes, elements=st.integers(-1, highest))


@settings(max_examples=50)
@given(codes(1), codes(5))
def test_alpha_is_that_of_the_krippendorff_package(
    verdicts: np.ndarray, grades: np.ndarray
) -> None:
    nominal = between_raters(raters(verdicts), settings=FEW).together["alpha"]
    missing = np.full(grades.shape, -1)
    graded = between_raters(raters(missing, grades), settings=FEW)
    ordinal = graded.together["grade alpha (ordinal)"]
    for alpha, data, level in ((nominal, verdicts, "nominal"), (ordinal, grades, "ordinal")):
        expected = reference_alpha(data, level)
        assert alpha.value == (None if expected is None else pytest.approx(expected, abs=1e-9))


@settings(max_examples=25)
@given(codes(5))
def test_means_are_over_all_pairs_of_raters(data: np.ndarray) -> None:
    correct = np.where(data < 0, -1, data // 3)
    result = between_raters(raters(correct, data), settings=FEW)
    pairs = [pair for grades in data for pair in combinations(grades[grades >= 0], 2)]
    agreement, error = result.together["agreement"], result.together["grade MAE"]
    assert result.n_items == np.count_nonzero((data >= 0).sum(axis=1) > 1)
    if not pairs:
        assert (agreement.value, error.value) == (None, None)
        assert agreement.note == error.note == "no item that two raters rated"
        return
    assert agreement.value == pytest.approx(np.mean([a // 3 == b // 3 for a, b in pairs]))
    assert error.value == pytest.approx(np.mean([abs(VALUES[a] - VALUES[b]) for a, b in pairs]))
    assert agreement.n_items == result.n_items


def sample_data(seed: int = 0, n: int = 60, r: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Grades of raters who mostly agree, with gaps; and the verdicts that go with them."""
    rng = np.random.default_rng(seed)
    grade = np.clip(rng.integers(0, 6, n)[:, None] + rng.integers(-1, 2, (n, r)), 0, 5)
    grade[rng.random((n, r)) < 0.2] = -1
    return np.where(grade < 0, -1, grade == 5), grade


def test_pairs_have_the_measures_of_a_judge_against_a_human() -> None:
    correct, grade = sample_data()
    people = raters(correct, grade)
    settings, cases = IntervalSettings(level=0.8), Sample(clusters=np.arange(60) // 3)
    result = between_raters(people, cases, settings=settings)
    assert {(of.level, of.n_clusters) for of in result.together.values()} == {(0.8, 20)}
    assert [(pair.first, pair.second) for pair in result.pairs] == [(0, 1), (0, 2), (1, 2)]
    for pair in result.pairs:
        both = (grade[:, pair.first] >= 0) & (grade[:, pair.second] >= 0)
        one, other = people[pair.first].take(both), people[pair.second].take(both)
        alone = calibrate(one, other, cases.take(both), settings=settings).measures
        assert pair.measures == {name: alone[name] for name in SHOWN}
        assert pair.n_items == np.count_nonzero(both)
        kappa = cohen_kappa_score(one.correct, other.correct)
        assert pair.measures["kappa"].value == pytest.approx(kappa)
        bias = (VALUES[one.grade] - VALUES[other.grade]).mean()
        assert pair.measures["grade bias"].value == pytest.approx(bias)


@pytest.mark.parametrize(
    "data",
    [np.zeros((0, 2), np.int64), np.full((4, 3), -1), np.array([[1, 0]]), np.ones((5, 3), int)],
)
def test_degenerate_raters_give_values_or_reasons(data: np.ndarray) -> None:
    result = between_raters(raters(data, np.where(data < 0, -1, 5 * data)))
    for estimate in result.together.values():
        assert None not in (estimate.value, estimate.low) or estimate.note
    json.dumps(asdict(result), allow_nan=False)


def test_stand_in_is_the_alternative_annotator_test_of_verdicts() -> None:
    said = np.random.default_rng(4).choice([-1, 0, 1], (90, 4), p=[0.1, 0.1, 0.8])
    judge, *people = raters(said)
    cases = np.arange(90) // 3
    result = ratings_annotator_test(judge, people, Sample(clusters=cases), epsilon=0.1, level=0.9)
    numbers = np.where(said < 0, np.nan, said.astype(float))
    assert result == alternative_annotator_test(
        numbers[:, 0], numbers[:, 1:], score="same", epsilon=0.1, clusters=cases, level=0.9
    )
    assert {one.test for one in result.annotators} == {"cluster-score"}
