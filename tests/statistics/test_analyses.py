"""Tables 8 and 9 of the paper from their counts, with intervals; laws, and no data."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.statistics.analyses import Diversity, SelfEvaluation, diversity, self_evaluation
from apbjudge.statistics.differences import Contrast, newcombe, paired_test, part_difference
from apbjudge.statistics.proportions import counted
from apbjudge.statistics.ratings import LEVELS, Ratings
from apbjudge.statistics.sample import Sample
from tests.statistics.builders import ends, ratings

VALUES = np.asarray(LEVELS)

# Agent Planning Benchmark (arXiv:2606.04874), table 8: of human-correct plans, how many the judge
# found correct too: different from the reference, and with the reference's chain
TABLE_8 = {
    "Claude Sonnet 4.5": ((51, 54), (204, 213), "94.4", "95.8"),
    "Gemini 3 Pro": ((50, 54), (209, 213), "92.6", "98.1"),
    "GPT-5": ((52, 54), (192, 213), "96.3", "90.1"),
}
# Table 9: of 60 plans of each tested model, how many humans and Gemini 3 Pro found correct, and
# the difference as printed
TABLE_9 = {
    "Claude Sonnet 4.5": (42, 46, "70.0", "76.7", "+6.7"),
    "Gemini 2.5 Flash": (38, 41, "63.3", "68.3", "+5.0"),
    "Gemini 2.5 Pro": (46, 49, "76.7", "81.7", "+5.0"),
    "Gemini 3 Pro": (47, 49, "78.3", "81.7", "+3.3"),
    "GPT-4o": (29, 33, "48.3", "55.0", "+6.7"),
    "GPT-5": (52, 51, "86.7", "85.0", "-1.7"),
    "InternVL3.5-241B-A28B": (31, 34, "51.7", "56.7", "+5.0"),
    "InternVL3.5-30B-A3B": (19, 24, "31.7", "40.0", "+8.3"),
    "InternVL3.5-38B": (26, 29, "43.3", "48.3", "+5.0"),
    "Qwen3-VL-235B-A22B-Instruct": (30, 31, "50.0", "51.7", "+1.7"),
    "Qwen3-VL-30B-A3B-Instruct": (23, 24, "38.3", "40.0", "+1.7"),
    "Qwen3-VL-32B-Instruct": (31, 31, "51.7", "51.7", "+0.0"),
}
NAMES = tuple(TABLE_9)
OWN = "Gemini 3 Pro"
N = 60


def value(result: Contrast | None) -> float:
    assert result is not None
    assert result.estimate.value is not None
    return result.estimate.value


# Table 8 -----------------------------------------------------------------------------------------


def table_8(judge: str) -> Diversity:
    (k1, n1), (k2, n2), *_ = TABLE_8[judge]
    said = ratings(np.concatenate([np.arange(n1) < k1, np.arange(n2) < k2]))
    return diversity(said, ratings(np.ones(n1 + n2)), np.repeat([0, 1], [n1, n2]))


@pytest.mark.parametrize("judge", TABLE_8)
def test_table_8_comes_out_with_the_intervals_it_lacks(judge: str) -> None:
    different, standard, *printed = TABLE_8[judge]
    result = table_8(judge)
    rates = [part.agreement.value or 0 for part in (result.different, result.standard)]
    assert [f"{100 * rate:.1f}" for rate in rates] == printed
    assert result.different.agreement == counted(*different)
    assert result.standard.agreement == counted(*standard)
    assert value(result.agreement) == pytest.approx(rates[0] - rates[1])
    assert ends(result.agreement) == pytest.approx(newcombe(*different, *standard), abs=1e-12)


def diverse(seed: int, n: int) -> tuple[Ratings, Ratings, np.ndarray, np.ndarray]:
    """Judge, humans, whether chains match, and cases; with gaps everywhere."""
    rng = np.random.default_rng(seed)
    correct, grade = rng.integers(-1, 2, (2, n)), rng.integers(-1, 6, (2, n))
    grade[0] = np.where(correct[0] < 0, -1, grade[0])
    judge, human = (ratings(c, g) for c, g in zip(correct, grade, strict=True))
    return judge, human, rng.integers(-1, 2, n), rng.integers(0, n, n)


@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_diversity_is_two_means_of_human_correct_plans(seed: int, n: int) -> None:
    judge, human, matches, cases = diverse(seed, n)
    result = diversity(judge, human, matches, Sample(clusters=cases))
    right = (human.correct == 1) & (judge.correct >= 0)
    graded = right & (human.grade >= 0) & (judge.grade >= 0)
    assert result.n_unknown == np.count_nonzero(right & (matches < 0))
    for group, matching in ((result.different, 0), (result.standard, 1)):
        part = right & (matches == matching)
        assert group.agreement.n_items == np.count_nonzero(part)
        if part.any():
            assert group.agreement.value == pytest.approx((judge.correct[part] == 1).mean())
        on = graded & part
        if on.any():
            error = np.abs(VALUES[judge.grade[on]] - VALUES[human.grade[on]]).mean()
            assert group.error.value == pytest.approx(error)
        else:
            assert group.error.value is None
    for contrast, of in ((result.agreement, "agreement"), (result.error, "error")):
        one, other = (getattr(group, of).value for group in (result.different, result.standard))
        if one is None or other is None:
            assert contrast.estimate.note == "one side has no items"
        else:
            assert value(contrast) == pytest.approx(one - other)
    json.dumps(asdict(result), allow_nan=False)


# Table 9 -----------------------------------------------------------------------------------------


def table_9(*, most: bool) -> SelfEvaluation:
    """The counts, with as few or as many disagreements as they allow: the paper prints neither."""
    judged: list[np.ndarray] = []
    labelled: list[np.ndarray] = []
    for human, judge, *_ in TABLE_9.values():
        judged.append(np.arange(N) < judge)
        labelled.append(np.arange(N) >= N - human if most else np.arange(N) < human)
    tested = np.repeat(np.arange(len(NAMES)), N)
    judge, human = (ratings(np.concatenate(part)) for part in (judged, labelled))
    return self_evaluation(judge, human, tested, NAMES, own=OWN)


@pytest.mark.parametrize("most", [False, True])
def test_table_9_comes_out(most: bool) -> None:
    result = table_9(most=most)
    assert tuple(row.tested_model for row in result.models) == NAMES
    for row, (human, judge, *printed) in zip(result.models, TABLE_9.values(), strict=True):
        assert row.human_rate == counted(human, N)
        assert row.judge_rate == counted(judge, N)
        rates = [100 * (rate.value or 0) for rate in (row.human_rate, row.judge_rate)]
        bias = 100 * (row.rate.estimate.value or 0)
        assert [f"{rates[0]:.1f}", f"{rates[1]:.1f}", f"{bias:+.1f}"] == printed
        assert row.grade.estimate.value is None
    assert result.grade is not None
    assert result.grade.estimate.value is None


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_self_evaluation_is_the_difference_of_two_biases(seed: int, n: int) -> None:
    judge, human, _, cases = diverse(seed, n)
    tested = np.random.default_rng(seed).integers(0, 3, n)
    names = ("a", "b", "c", "absent")
    sample = Sample(clusters=cases)
    result = self_evaluation(judge, human, tested, names, sample, own="b")
    both = (judge.correct >= 0) & (human.correct >= 0)
    graded = (judge.correct >= 0) & (judge.grade >= 0) & (human.grade >= 0)
    rate = judge.correct.astype(float) - human.correct
    grade = VALUES[judge.grade] - VALUES[human.grade]
    assert [row.tested_model for row in result.models] == [
        name for i, name in enumerate(names) if np.any(both & (tested == i))
    ]
    for row in result.models:
        at = both & (tested == names.index(row.tested_model))
        assert row.rate == paired_test(rate[at], sample.take(at))
        assert row.judge_rate.n_items == row.human_rate.n_items == np.count_nonzero(at)
        on = graded & (tested == names.index(row.tested_model))
        assert row.grade.estimate.n_items == np.count_nonzero(on)
        if on.any():
            assert row.judge_grade.value == pytest.approx(VALUES[judge.grade[on]].mean())
            assert row.human_grade.value == pytest.approx(VALUES[human.grade[on]].mean())
            assert row.grade.estimate.value == pytest.approx(grade[on].mean())
    for contrast, differences, rows in ((result.rate, rate, both), (result.grade, grade, graded)):
        own, others = rows & (tested == 1), rows & (tested != 1)
        expected = part_difference(differences, own, others, sample, bounds=(-1.0, 1.0))
        assert contrast == expected
        if own.any() and others.any():
            assert value(contrast) == pytest.approx(
                differences[own].mean() - differences[others].mean()
            )
    json.dumps(asdict(result), allow_nan=False)


def leniency(own: float, others: float, seed: int) -> SelfEvaluation:
    """A judge that raises wrong plans to correct with these chances, on 100 shared cases."""
    rng = np.random.default_rng(seed)
    tested = np.tile(np.arange(6), 100)
    human = rng.integers(0, 2, 600)
    raised = rng.random(600) < np.where(tested == 0, own, others)
    judge = np.where(raised, 1, human)
    cases = Sample(clusters=np.repeat(np.arange(100), 6))
    return self_evaluation(ratings(judge), ratings(human), tested, tuple("abcdef"), cases, own="a")


def test_leniency_with_everybody_is_no_self_preference_and_with_itself_is() -> None:
    alike, partial = leniency(0.3, 0.3, seed=1), leniency(0.7, 0.3, seed=1)
    assert (alike.models[0].rate.p_value or 0) < 0.001
    low, high = ends(alike.rate)
    assert low < 0 < high
    assert ends(partial.rate)[0] > 0
    assert alike.models[0].rate.estimate.n_clusters == 100


@pytest.mark.parametrize("own", [None, "nobody"])
def test_a_judge_that_was_not_tested_has_no_favourite_of_its_own(own: str | None) -> None:
    judge, human = ratings([1, 0, 1]), ratings([1, 1, 0])
    result = self_evaluation(judge, human, np.array([0, 0, 1]), ("a", "b"), own=own)
    assert (result.own, result.rate, result.grade) == (None, None, None)
    assert [row.tested_model for row in result.models] == ["a", "b"]


# Little or no data -------------------------------------------------------------------------------


@pytest.mark.parametrize("judged", [[], [1], [0], [-1], [1, 1, 1, 1]])
def test_degenerate_data_gives_values_or_reasons(judged: list[int]) -> None:
    n = len(judged)
    judge = ratings(judged, np.where(np.array(judged) == 1, 5, -1))
    for labelled, matching in product((1, 0, -1), (1, 0, -1)):
        human = ratings([labelled] * n, np.full(n, 5 if labelled == 1 else -1))
        result = diversity(judge, human, np.full(n, matching))
        own = self_evaluation(judge, human, np.zeros(n, dtype=np.int64), ("a",), own="a")
        assert own.rate is not None
        for contrast in (result.agreement, result.error, own.rate, own.grade):
            assert contrast is not None
            assert (contrast.estimate.value, contrast.estimate.note) == (
                None,
                "one side has no items",
            )
        json.dumps([asdict(result), asdict(own)], allow_nan=False)
