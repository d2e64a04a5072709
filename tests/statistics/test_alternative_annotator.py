"""The alternative annotator test: the authors' printed figures, its definition, its limits."""

from __future__ import annotations

from itertools import product
from statistics import NormalDist
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from statsmodels.stats.multitest import multipletests

from apbjudge.statistics.estimates import Array
from apbjudge.statistics.raters import _signed_rank, alternative_annotator_test

Score = Literal["same", "distance"]

# How often each combination of votes (a, b, tie, or none) occurs among 120 pairs of answers of
# MT-Bench (Zheng et al. 2023, arXiv:2306.05685) as the authors of the test use it: the judges
# gemini_flash and gemini_pro, then three experts. Counted from data/mtbench of
# github.com/nitaytech/AltTest
COMBINATIONS = """
    aa.aa:5 aa.at:2 aa.bt:1 aa.tt:1 aaa.a:8 aaaa.:9 aab.b:3 aaba.:1 aabb.:3 aat.t:3 aata.:2
    aatt.:2 ab.aa:1 ab.tt:2 abb.b:1 abt.a:2 abtt.:1 at.tb:2 ba.aa:2 ba.bb:1 ba.tt:1 baaa.:1
    baaaa:1 bab.b:1 bab.t:1 baba.:1 bat.t:1 batab:1 batat:1 batbb:1 bb.aa:3 bb.at:1 bb.bb:9
    bb.bt:5 bb.ta:3 bb.tb:2 bb.tt:2 bbat.:1 bbb.b:8 bbb.t:2 bbbab:1 bbbb.:5 bbbba:1 bbt.a:1
    bbt.b:2 bbt.t:1 bbtb.:4 bbtt.:2 bt.tt:1 btt.t:2 tt.at:1 tt.tt:1"""
VOTES = np.array(
    [
        [{"a": 0, "b": 1, "t": 2, ".": np.nan}[vote] for vote in votes]
        for votes, n in (entry.split(":") for entry in COMBINATIONS.split())
        for _ in range(int(n))
    ]
)
MT_JUDGES = {"gemini_flash": VOTES[:, 0], "gemini_pro": VOTES[:, 1]}
MT_HUMANS = VOTES[:, 2:]


# alt_test_example.ipynb of the authors, epsilon 0.2: "Winning Rate=0.00 Advantage Probability=…"
@pytest.mark.parametrize(("name", "advantage"), [("gemini_flash", 0.72), ("gemini_pro", 0.76)])
def test_the_authors_printed_figures_for_mt_bench(name: str, advantage: float) -> None:
    result = alternative_annotator_test(
        MT_JUDGES[name], MT_HUMANS, score="same", epsilon=0.2, test="t"
    )
    assert result.winning_rate == 0
    assert result.passes is False
    assert result.advantage_probability.value == pytest.approx(advantage, abs=5e-3)
    assert [a.n_items for a in result.annotators] == [74, 84, 88]
    assert (result.test, result.reason, result.n_left_out) == ("t", "", 0)


def by_definition(judge: Array, humans: Array, score: Score, epsilon: float) -> list[dict]:
    """The test as the paper has it, item by item, with scipy's t-test and statsmodels' BY."""
    rows = []
    for j in range(humans.shape[1]):
        wins = []
        for i, own in enumerate(humans[:, j]):
            rest = [x for k, x in enumerate(humans[i]) if k != j and not np.isnan(x)]
            if rest and not np.isnan(own) and not np.isnan(judge[i]):
                f, h = scored(judge[i], rest, score), scored(own, rest, score)
                wins.append((f >= h, h >= f))
        f, h = np.array(wins, dtype=float).T
        p = stats.ttest_1samp(h - f, epsilon, alternative="less").pvalue
        rows.append({"n": len(f), "judge": f.mean(), "human": h.mean(), "p": p})
    rejected = multipletests([row["p"] for row in rows], 0.05, method="fdr_by")[0]
    return [{**row, "rejected": bool(won)} for row, won in zip(rows, rejected, strict=True)]


def scored(value: float, rest: list[float], score: Score) -> float:
    if score == "same":
        return float(np.mean([value == x for x in rest]))
    return -float(np.sqrt(np.mean([(value - x) ** 2 for x in rest])))


def simulated(seed: int, *, r: int = 4, n: int = 60, noise: float = 0.3) -> tuple[Array, Array]:
    """Whole numbers 0 to 5 around a truth, a fifth of the humans' missing, the judge's too."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 6, n)
    answers = np.where(
        rng.random((n, r + 1)) < noise, rng.integers(0, 6, (n, r + 1)), truth[:, None]
    )
    answers = np.where(rng.random((n, r + 1)) < 0.2, np.nan, answers)
    return answers[:, 0], answers[:, 1:]


@pytest.mark.parametrize(
    ("seed", "score", "epsilon"),
    [(0, "same", 0.0), (1, "same", 0.2), (2, "distance", 0.1), (3, "distance", 0.2)],
)
def test_agrees_with_the_definition(seed: int, score: Score, epsilon: float) -> None:
    judge, humans = simulated(seed)
    result = alternative_annotator_test(judge, humans, score=score, epsilon=epsilon, test="t")
    expected = by_definition(judge, humans, score, epsilon)
    for annotator, row in zip(result.annotators, expected, strict=True):
        assert annotator.n_items == row["n"]
        assert annotator.rho_judge.value == pytest.approx(row["judge"])
        assert annotator.rho_human.value == pytest.approx(row["human"])
        assert annotator.p_value == pytest.approx(row["p"], rel=1e-9)
        assert annotator.rejected == row["rejected"]
    assert result.winning_rate == np.mean([row["rejected"] for row in expected])
    assert result.passes == (result.winning_rate >= 0.5)
    advantage = float(np.mean([row["judge"] for row in expected]))
    assert result.advantage_probability.value == pytest.approx(advantage)


def test_grades_in_decimals_tie_where_they_do_on_paper() -> None:
    # 0.3 - 0.2 and 0.2 - 0.1 differ in floating point
    result = alternative_annotator_test(
        np.array([0.3]), np.array([[0.1, 0.2]]), score="distance", epsilon=0.1
    )
    assert (result.annotators[0].rho_judge.value, result.annotators[0].rho_human.value) == (1, 1)


def test_the_score_test_gives_the_published_statistic() -> None:
    """Tango 1998, section 3.4: 44 pairs, one discordant, 10 points allowed: Z = 1.709."""
    judge, humans = np.zeros(44), np.zeros((44, 2))
    judge[0] = 1  # once the human is with the other one and the judge is not
    result = alternative_annotator_test(judge, humans, score="same", epsilon=0.1)
    assert result.annotators[0].p_value == pytest.approx(NormalDist().cdf(-1.709), abs=5e-5)


def test_copies_of_items_in_a_cluster_prove_no_more_and_without_its_name_they_would() -> None:
    judge, humans = (np.nan_to_num(of) for of in simulated(0, r=3, n=40))
    cases = np.repeat(np.arange(40), 4)
    once = alternative_annotator_test(judge, humans, score="same", epsilon=0.3)
    named, unnamed = (
        alternative_annotator_test(
            judge[cases], humans[cases], score="same", epsilon=0.3, clusters=clusters
        )
        for clusters in (cases, None)
    )
    for alone, copied, taken in zip(*(r.annotators for r in (once, named, unnamed)), strict=True):
        assert copied.test == "cluster-score"
        assert copied.rho_judge.n_clusters == 40
        assert copied.p_value == pytest.approx(alone.p_value, rel=0.25)
        assert taken.p_value < 0.5 * copied.p_value


# below: the signed-rank test of few items


@given(hnp.arrays(np.float64, st.integers(1, 9), elements=st.sampled_from([-1.2, -0.2, 0.8])))
def test_the_signed_rank_test_with_ties_counts_all_signs(differences: Array) -> None:
    ranks = stats.rankdata(np.abs(differences))
    signs = np.array(list(product([0, 1], repeat=len(ranks))))
    result = ranks[differences > 0].sum()
    assert _signed_rank(differences) == pytest.approx(np.mean(signs @ ranks <= result))


@pytest.mark.parametrize(("n", "test"), [(29, "signed-rank"), (30, "t")])
def test_30_items_are_not_few(n: int, test: str) -> None:
    result = alternative_annotator_test(
        np.zeros(n), np.zeros((n, 3)), score="same", test="signed-rank"
    )
    assert result.test == test
    assert bool(result.reason) == (n < 30)


def test_a_judge_who_copies_one_of_three_alike_humans_ties_everywhere() -> None:
    humans = np.repeat(np.arange(40.0)[:, None] % 3, 3, axis=1)
    result = alternative_annotator_test(humans[:, 0], humans, score="same")
    assert result.passes is True
    assert result.winning_rate == 1
    assert result.advantage_probability.value == 1
    assert 0.9 < result.advantage_probability.low < 1
    assert {a.p_value for a in result.annotators} == {
        NormalDist().cdf(-(10**0.5))
    }  # 0 is 3.16 errors below
    usual = alternative_annotator_test(humans[:, 0], humans, score="same", test="t")
    assert {a.p_value for a in usual.annotators} == {0.5**40}  # no spread: the sign test
    strict = alternative_annotator_test(humans[:, 0], humans, score="same", epsilon=0.0)
    assert strict.passes is False
    assert {a.p_value for a in strict.annotators} == {1.0}


def test_two_raters_are_compared_with_each_other_only_and_that_is_said() -> None:
    result = alternative_annotator_test(MT_HUMANS[:, 2], MT_HUMANS[:, :2], score="same")
    assert result.passes is not None
    assert result.n_annotators == 2
    assert result.annotators[0].n_items == result.annotators[1].n_items < 74
    assert result.reason.startswith("2 raters: the authors recommend 3 or more")


def test_items_without_the_judge_or_with_one_human_are_left_out_and_counted() -> None:
    judge, humans = simulated(4)
    used = ~np.isnan(judge) & (np.sum(~np.isnan(humans), axis=1) >= 2)
    result = alternative_annotator_test(judge, humans, score="same")
    assert 0 < result.n_left_out == 60 - used.sum()
    assert result.n_items == used.sum()
    kept = alternative_annotator_test(judge[used], humans[used], score="same")
    assert kept.annotators == result.annotators


def test_a_human_without_items_counts_in_no_rate() -> None:
    judge, humans = simulated(0)
    with_silent = alternative_annotator_test(judge, np.insert(humans, 1, np.nan, 1), score="same")
    without = alternative_annotator_test(judge, humans, score="same")
    for name in ("n_annotators", "winning_rate", "advantage_probability"):
        assert getattr(with_silent, name) == getattr(without, name)
    mute = with_silent.annotators[1]
    assert (mute.n_items, mute.p_value, mute.rejected, mute.test) == (0, None, False, "none")


@pytest.mark.parametrize(
    ("humans", "reason"),
    [
        (np.zeros((0, 3)), "no item"),
        (np.zeros((5, 1)), "1 rater(s)"),
        (np.array([[0, np.nan], [np.nan, 0]]), "no item"),
    ],
)
def test_where_nothing_can_be_compared_there_is_a_reason(humans: Array, reason: str) -> None:
    result = alternative_annotator_test(np.zeros(len(humans)), humans, score="distance")
    assert (result.winning_rate, result.passes, result.test) == (None, None, "none")
    assert result.advantage_probability.value is None
    assert result.n_left_out == len(humans)
    assert result.reason.startswith(reason)


def test_impossible_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"shapes \(n,\) and \(n, r\), got \(4,\) and \(3, 2\)"):
        alternative_annotator_test(np.zeros(4), np.zeros((3, 2)), score="same")
    with pytest.raises(ValueError, match="finite numbers"):
        alternative_annotator_test(np.array([0, 1, np.inf]), np.zeros((3, 2)), score="same")
    with pytest.raises(ValueError, match=r"epsilon: .*got 1\.0"):
        alternative_annotator_test(np.zeros(3), np.zeros((3, 2)), score="same", epsilon=1.0)
