"""Tables 8 and 9 of the paper from their counts, with intervals; laws, and no data."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import product

import numpy as np
import pytest

from apbjudge.statistics.analyses import diversity, self_evaluation
from apbjudge.statistics.differences import Contrast
from apbjudge.statistics.proportions import counted
from apbjudge.statistics.sample import Sample
from tests.statistics.builders import ratings

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


def test_table_8_comes_out() -> None:
    for (k1, n1), (k2, n2), *printed in TABLE_8.values():
        said = ratings(np.concatenate([np.arange(n1) < k1, np.arange(n2) < k2]))
        result = diversity(said, ratings(np.ones(n1 + n2)), np.repeat([0, 1], [n1, n2]))
        agreements = [part.agreement for part in (result.different, result.standard)]
        assert [f"{100 * (of.value or 0):.1f}" for of in agreements] == printed
        assert agreements == [counted(k1, n1), counted(k2, n2)]
        assert value(result.agreement) == pytest.approx(k1 / n1 - k2 / n2)


def test_diversity_is_two_means_of_human_correct_plans() -> None:
    judge = ratings([1, 0, 1, 1, -1, 1, 1, 1], [5, 0, 4, 5, -1, 5, 5, 5])
    human = ratings([1, 1, 1, 1, 1, 0, -1, 1], [5, 5, 5, -1, 5, 0, 5, 5])
    matches = np.array([0, 0, 1, 1, 0, 0, 0, -1])
    result = diversity(judge, human, matches, Sample(clusters=np.arange(8) // 2))
    agreements = [group.agreement for group in (result.different, result.standard)]
    errors = [group.error for group in (result.different, result.standard)]
    assert [(of.value, of.n_items, of.n_clusters) for of in agreements] == [(0.5, 2, 1), (1, 2, 1)]
    assert [(of.value, of.n_items) for of in errors] == [(0.5, 2), (pytest.approx(0.2), 1)]
    assert value(result.agreement) == -0.5
    assert value(result.error) == pytest.approx(0.3)
    assert result.agreement.estimate.n_clusters == 2
    assert result.n_unknown == 1


# Table 9 -----------------------------------------------------------------------------------------


def test_table_9_comes_out() -> None:
    """The counts, with as few disagreements as they allow: the paper does not print these."""
    judged = np.concatenate([np.arange(N) < judge for _, judge, *_ in TABLE_9.values()])
    labelled = np.concatenate([np.arange(N) < human for human, *_ in TABLE_9.values()])
    tested = np.repeat(np.arange(len(NAMES)), N)
    result = self_evaluation(ratings(judged), ratings(labelled), tested, NAMES, own=OWN)
    assert tuple(row.tested_model for row in result.models) == NAMES
    for row, (human, judge, *printed) in zip(result.models, TABLE_9.values(), strict=True):
        assert row.human_rate == counted(human, N)
        assert row.judge_rate == counted(judge, N)
        rates = [100 * (rate.value or 0) for rate in (row.human_rate, row.judge_rate)]
        bias = 100 * (row.rate.estimate.value or 0)
        assert [f"{rates[0]:.1f}", f"{rates[1]:.1f}", f"{bias:+.1f}"] == printed
        assert row.grade.estimate.value is None


def test_self_evaluation_is_the_difference_of_two_biases() -> None:
    judge = ratings([1, 1, 0, 1, -1, 1], [5, 4, 0, 5, -1, 3])
    human = ratings([0, 1, 0, 1, 1, -1], [3, 4, 1, -1, 5, 2])
    names = ("a", "b", "c", "absent")
    sample = Sample(clusters=np.arange(6) // 2)
    result = self_evaluation(judge, human, np.array([0, 0, 1, 1, 0, 2]), names, sample, own="a")
    assert [row.tested_model for row in result.models] == ["a", "b"]
    figures = [
        (row.judge_rate.value, row.human_rate.value, row.rate.estimate.value)
        for row in result.models
    ]
    assert figures == [(1, 0.5, 0.5), (0.5, 0.5, 0)]
    own, other = result.models
    assert (own.judge_grade.value, own.human_grade.value) == pytest.approx((0.9, 0.7))
    assert (own.grade.estimate.value, other.grade.estimate.value) == pytest.approx((0.2, -0.2))
    assert (own.rate.estimate.n_items, own.rate.estimate.n_clusters) == (2, 1)
    assert value(result.rate) == 0.5
    assert value(result.grade) == pytest.approx(0.2)  # the others: -0.2 and 0.2


# Little or no data -------------------------------------------------------------------------------


@pytest.mark.parametrize("judged", [[], [1], [-1], [1, 1, 1, 1]])
def test_one_side_without_items_has_no_difference(judged: list[int]) -> None:
    n = len(judged)
    judge = ratings(judged, np.where(np.array(judged) == 1, 5, -1))
    for labelled, matching in product((1, -1), (1, 0, -1)):
        human = ratings([labelled] * n, np.full(n, 5 if labelled == 1 else -1))
        result = diversity(judge, human, np.full(n, matching))
        own = self_evaluation(judge, human, np.zeros(n, dtype=np.int64), ("a",), own="a")
        for contrast in (result.agreement, result.error, own.rate, own.grade):
            assert contrast is not None
            assert contrast.estimate.value is None
            assert contrast.estimate.note == "one side has no items"
        json.dumps([asdict(result), asdict(own)], allow_nan=False)
    nobody = self_evaluation(judge, judge, np.zeros(n, dtype=np.int64), ("a",), own="nobody")
    assert (nobody.own, nobody.rate, nobody.grade) == (None, None, None)
