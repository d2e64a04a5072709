"""A judge against humans: the published figures, other libraries, policies and bad input."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from functools import partial
from itertools import chain, product
from typing import get_args

import numpy as np
import pytest
from sklearn import metrics as sk

from apbjudge.statistics import wilson
from apbjudge.statistics.measures import PAPER, Policy, calibrate, paper_measures
from apbjudge.statistics.ratings import CODES, Ratings
from apbjudge.statistics.sample import METHODS, IntervalSettings, Method, Sample
from tests.statistics.builders import ends, ratings, width

FLAGS_COMPARED = 307 * 6
TABLE_7 = {
    "GPT-5": ((359, 28, 54, 279), 245, 1609, "88.61 92.76 86.92 .897 .068 87.35"),
    "Gemini 3 Pro": ((401, 44, 12, 263), 212, 1653, "92.22 90.11 97.09 .935 .059 89.74"),
    "Claude Sonnet 4.5": ((373, 114, 40, 193), 454, 1469, "78.61 76.59 90.31 .829 .126 79.75"),
    "Gemini 3 Pro, blind": ((371, 96, 42, 211), 425, 1500, "80.83 79.44 89.83 .843 .118 81.43"),
}
"""Agent Planning Benchmark (arXiv:2606.04874), table 7: TP, FP, FN, TN; steps of 0.2 that grades
are off; flags that agree on the items humans found incorrect; the figures as printed."""


def published(judge: str) -> tuple[Ratings, Ratings]:
    """Items that have the counts of the table."""
    (tp, fp, fn, tn), steps, agreeing, _ = TABLE_7[judge]
    says = np.repeat([1, 1, 0, 0], [tp, fp, fn, tn])
    correct = np.repeat([1, 0, 1, 0], [tp, fp, fn, tn])
    differing = np.zeros(720, dtype=int)
    wrong = np.flatnonzero(correct == 0)
    each, rest = divmod(FLAGS_COMPARED - agreeing, len(wrong))
    differing[wrong] = each + (np.arange(len(wrong)) < rest)
    return (
        ratings(says, (np.arange(720) < steps) + 0, 2**differing - 1),
        ratings(correct, np.zeros(720), np.zeros(720)),
    )


def random_pair(n: int, seed: int, *, unscored: float = 0.0) -> tuple[Ratings, Ratings]:
    rng = np.random.default_rng(seed)
    correct = rng.integers(0, 2, n)
    says = np.where(rng.random(n) < 0.8, correct, 1 - correct)
    says = np.where(rng.random(n) < unscored, -1, says)
    grade = rng.integers(0, 6, n)
    graded = np.clip(grade + rng.integers(-1, 2, n), 0, 5)
    graded = np.where(says < 0, -1, graded)
    flags = rng.integers(0, 64, n)
    judge = ratings(says, graded, flags ^ rng.integers(0, 8, n))
    judge = replace(judge, known=np.where(says < 0, 0, 63).astype(np.uint8))
    return judge, ratings(correct, grade, flags)


@pytest.mark.parametrize("judge", TABLE_7)
def test_the_paper_s_table_to_every_printed_digit(judge: str) -> None:
    result = calibrate(*published(judge)).measures
    values = [result[kind.name].value or 0.0 for kind in PAPER]
    percent = [f"{100 * values[i]:.2f}" for i in (0, 1, 2, 5)]
    decimals = [f"{values[i]:.3f}".lstrip("0") for i in (3, 4)]
    assert " ".join((*percent[:3], *decimals, percent[3])) == TABLE_7[judge][3]


def test_rates_of_the_paper_s_table_have_wilson_s_interval_over_their_denominator() -> None:
    (tp, fp, fn, tn), *_ = TABLE_7["GPT-5"]
    result = calibrate(*published("GPT-5")).measures
    expected = {"agreement": (tp + tn, 720), "precision": (tp, tp + fp), "human CR": (413, 720)}
    for name, (k, n) in expected.items():
        assert ends(result[name]) == wilson(k, n), name
        assert (result[name].n_items, result[name].method) == (n, "wilson"), name
    jaccard = wilson(tp, tp + fp + fn)
    assert ends(result["F1"]) == pytest.approx([2 * j / (1 + j) for j in jaccard], abs=1e-12)
    assert result["F1"].n_items == tp + fp + fn
    pabak = [2 * share - 1 for share in wilson(tp + tn, 720)]
    assert ends(result["PABAK"]) == pytest.approx(pabak, abs=1e-12)
    assert result["Err-Type (human-incorrect)"].n_items == 307


def test_paper_measures_are_those_of_calibrate() -> None:
    judge, human = random_pair(150, 3, unscored=0.1)
    for unscored in ("exclude", "wrong"):
        whole = calibrate(judge, human, unscored=unscored).measures
        same = {kind.name: whole[kind.name] for kind in PAPER}
        assert paper_measures(judge, human, unscored=unscored) == same


def test_values_are_those_of_scikit_learn() -> None:
    judge, human = random_pair(80, 0)
    result = calibrate(judge, human)
    measures = {name: e.value for name, e in result.measures.items()}
    expected = {
        "kappa": sk.cohen_kappa_score(human.correct, judge.correct),
        "phi": sk.matthews_corrcoef(human.correct, judge.correct),
        "grade kappa (quadratic)": sk.cohen_kappa_score(
            human.grade, judge.grade, weights="quadratic", labels=range(6)
        ),
    }
    assert {name: measures[name] for name in expected} == pytest.approx(expected)
    table = sk.confusion_matrix(judge.correct, human.correct)
    assert np.array(result.tables["is_correct"].counts).tolist() == table.tolist()
    grades = sk.confusion_matrix(judge.grade, human.grade, labels=range(6))
    assert np.array(result.tables["grade"].counts).tolist() == grades.tolist()
    for i, code in enumerate(CODES):
        ours, theirs = (of.flags >> i & 1 for of in (judge, human))
        of_code = result.codes[code]
        assert of_code["F1"].value == pytest.approx(sk.f1_score(theirs, ours))
        assert of_code["judge rate"].value == pytest.approx(ours.mean())
        assert of_code["human rate"].value == pytest.approx(theirs.mean())


def test_flags_on_which_one_said_nothing_are_not_compared() -> None:
    judge = ratings([0, 0], flags=[0b01, 0b00], known=0b000011)
    human = ratings([0, 0], flags=[0b01, 0b01], known=0b000111)
    result = calibrate(judge, human)
    assert result.measures["Err-Type (all)"].value == pytest.approx(3 / 4)
    assert sorted(result.codes) == ["E1", "E2"]


JUDGE = ratings([1, 1, 0, 0, -1, -1], [5, 5, 0, 1, -1, -1], [0, 0, 1, 1, 0, 0])
HUMAN = ratings([1, 0, 0, 1, 1, 0], [5, 0, 0, 5, 5, 3], [0, 1, 1, 0, 0, 3])


@pytest.mark.parametrize("unscored", ["exclude", "wrong"])
def test_policies_by_hand(unscored: Policy) -> None:
    expected = {
        "agreement": ((2 / 4, 4), (2 / 6, 6)),
        "precision": ((1 / 2, 2), (1 / 2, 2)),
        "recall": ((1 / 2, 2), (1 / 3, 3)),
        "F1": ((1 / 2, 3), (2 / 5, 4)),
        "specificity": ((1 / 2, 2), (1 / 3, 3)),
        "PABAK": ((0.0, 4), (-1 / 3, 6)),
        "human CR": ((1 / 2, 4), (1 / 2, 6)),
        "judge CR": ((1 / 2, 4), (1 / 2, 4)),
        "grade MAE": ((1.8 / 4, 4), (3.4 / 6, 6)),
        "grade bias": ((0.2 / 4, 4), (0.2 / 4, 4)),
        "Err-Type (human-incorrect)": ((11 / 12, 2), (11 / 18, 3)),
        "Err-Type (all)": ((22 / 24, 4), (22 / 36, 6)),
    }
    result = calibrate(JUDGE, HUMAN, unscored=unscored)
    for name, values in expected.items():
        value, n = values[unscored == "wrong"]
        assert result.measures[name].value == pytest.approx(value), name
        assert result.measures[name].n_items == n, name
    assert (result.n_items, result.n_scored, result.policy) == (6, 4, unscored)
    assert result.tables["is_correct"].first == ("no", "yes", "unscored")
    assert result.tables["is_correct"].counts == ((1, 1), (1, 1), (1, 1))


def test_an_unscored_item_is_a_third_answer_to_kappa_where_it_counts_as_wrong() -> None:
    result = calibrate(JUDGE, HUMAN, unscored="wrong").measures
    assert result["kappa"].value == pytest.approx(
        sk.cohen_kappa_score([1, 1, 0, 0, 2, 2], HUMAN.correct)
    )
    assert (result["phi"].value, result["phi"].note) == (None, "not defined for three answers")
    assert result["grade alpha (ordinal)"].note.startswith("an unscored item has no grade")


def test_copies_within_a_case_do_not_narrow_anything() -> None:
    judge, human = random_pair(40, 6)
    copies = np.repeat(np.arange(40), 5)
    once = calibrate(judge, human).measures
    copied = calibrate(judge.take(copies), human.take(copies), Sample(clusters=copies)).measures
    rows = calibrate(judge.take(copies), human.take(copies)).measures
    for name, estimate in once.items():
        assert width(copied[name]) >= width(estimate) * 0.97, name
        assert width(rows[name]) < 0.6 * width(estimate), name


def test_weights_stand_for_items_that_were_not_drawn() -> None:
    judge, human = random_pair(50, 7)
    times = np.random.default_rng(1).integers(1, 4, 50)
    weighted = calibrate(judge, human, Sample(weights=times.astype(float))).measures
    rows = np.repeat(np.arange(50), times)
    repeated = calibrate(judge.take(rows), human.take(rows)).measures
    for name, estimate in weighted.items():
        few = 0.002 if "alpha" in name else 1e-9  # it is corrected for the number of ratings
        assert estimate.value == pytest.approx(repeated[name].value, abs=few), name
        assert width(estimate) > 0, name


def test_everything_can_be_resampled_instead() -> None:
    judge, human = random_pair(300, 8)
    chosen = IntervalSettings(method="bca", n_resamples=2000)
    usual = IntervalSettings(method="jackknife")
    resampled, scored = (calibrate(judge, human, settings=s).measures for s in (chosen, usual))
    for name, estimate in resampled.items():
        assert (estimate.method, estimate.seed) == ("bca", chosen.seed), name
        assert estimate.n_items == scored[name].n_items, name
        low, high = ends(scored[name])
        assert ends(estimate) == pytest.approx((low, high), abs=0.2 * (high - low)), name


def _nobody(n: int) -> Ratings:
    return ratings([-1] * n)


EMPTY = ratings([], [], [])
few = partial(ratings, known=7)  # three codes: set by both, by one and by none, as six would be
DEGENERATE: dict[str, tuple[Ratings, Ratings]] = {
    "no items": (EMPTY, EMPTY),
    "one item": (few([1], [3], [0]), few([1], [3], [0])),
    "all agree, one class": (few([1] * 9, [5] * 9, [0] * 9), few([1] * 9, [5] * 9, [0] * 9)),
    "humans say no to all": (ratings([0, 1] * 4), ratings([0] * 8)),
    "all unscored": (_nobody(5), few([1, 0, 1, 0, 0], [5, 1, 5, 0, 0], [0, 1, 0, 3, 4])),
    "missing everywhere": (_nobody(4), _nobody(4)),
    "labels without grade or flags": (few([1, 0, 1], [5, 0, 4], [0, 1, 0]), ratings([1, 0, 0])),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_input_gives_a_stated_value_or_the_reason_why_not(
    case: str, method: Method
) -> None:
    judge, human = DEGENERATE[case]
    rows, chosen = np.arange(len(judge)), IntervalSettings(method=method, n_resamples=30)
    sampled = Sample(clusters=rows // 2, weights=1.0 + rows, strata=rows // 4)
    for unscored, sample in product(get_args(Policy), (None, Sample(clusters=rows * 0), sampled)):
        result = calibrate(judge, human, sample, unscored=unscored, settings=chosen)
        json.dumps(asdict(result), allow_nan=False, default=float)
        of_codes = [of.items() for of in result.codes.values()]
        for measure, of in chain(result.measures.items(), *of_codes):
            if of.low is None or of.high is None:
                assert of.low is of.high is None, (unscored, measure)
                assert of.note, (unscored, measure)
            elif of.value is not None:
                assert of.low - 1e-9 <= of.value <= of.high + 1e-9, (unscored, measure)


def test_reasons_name_what_is_missing() -> None:
    yes = calibrate(*DEGENERATE["humans say no to all"]).measures
    assert yes["recall"].note == "the humans said yes to no item"
    assert yes["grade MAE"].note == "no item that both graded"
    assert yes["Err-Type (all)"].note == "no flag that both rated"
    nothing = calibrate(*DEGENERATE["missing everywhere"]).measures
    assert nothing["agreement"].note == "no item with a verdict and a human label"
    assert nothing["precision"].note == "the judge said yes to no item"
