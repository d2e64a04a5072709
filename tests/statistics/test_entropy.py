"""Entropy and what it tells of errors: published bins, independent computations, known worlds."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy as scipy_entropy
from sklearn.metrics import roc_auc_score

from apbjudge.statistics import (
    auroc,
    auroc_within,
    binned,
    first_wrong,
    miller_madow,
    shannon_entropy,
    slope_within,
    wilson,
)
from tests.statistics.builders import ends

# arXiv:2604.12126, table 8: choices and errors in five equal bins of the entropy
N, ERRORS = [365, 116, 67, 21, 15], [184, 79, 52, 20, 14]
BIN = np.repeat(np.arange(5.0), N)
WRONG = np.concatenate([np.arange(n) < e for n, e in zip(N, ERRORS, strict=True)])


def test_the_published_bins_have_an_auroc_of_635() -> None:
    area = auroc(BIN, WRONG)
    assert area.value == pytest.approx(0.635, abs=5e-4)
    assert area.value == pytest.approx(float(roc_auc_score(WRONG, BIN)))
    assert ends(area)[0] > 0.5
    assert (area.method, area.n_items) == ("delong", 584)


@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=9).filter(lambda ws: sum(ws) > 1e-3))
def test_entropy_agrees_with_scipy_and_stays_within_its_bounds(weights: list[float]) -> None:
    shares = [weight / sum(weights) for weight in weights]
    nats, bits = shannon_entropy(shares), shannon_entropy(shares, unit="bits")
    assert nats == pytest.approx(float(scipy_entropy(shares)), rel=1e-9, abs=1e-12)
    assert bits == pytest.approx(nats / log(2), rel=1e-9, abs=1e-12)
    assert 0 <= nats <= log(len(shares))


def test_miller_and_madow_add_half_a_value_less_one_per_sample() -> None:
    plain = shannon_entropy([0.6, 0.3, 0.1])
    assert miller_madow([6, 3, 1, 0]) == pytest.approx(plain + 2 / 20)
    assert miller_madow([6, 3, 1], unit="bits") == pytest.approx((plain + 0.1) / log(2))
    assert miller_madow([10]) == 0.0
    assert miller_madow([]) == 0.0


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=40))
def test_auroc_is_what_sklearn_says_and_turns_with_the_scores(rows: list[tuple[int, bool]]) -> None:
    scores, wrong = (np.array(column) for column in zip(*rows, strict=True))
    area = auroc(scores, wrong)
    if len(set(wrong.tolist())) < 2:
        assert area.value is None
        return
    assert area.value == pytest.approx(float(roc_auc_score(wrong, scores)))
    assert auroc(-scores, wrong).value == pytest.approx(1 - area.value)
    low, high = ends(area)
    assert 0 <= low <= area.value <= high <= 1


def test_copies_of_plans_do_not_narrow_the_interval() -> None:
    rng = np.random.default_rng(1)
    scores, wrong, plans = rng.random(60), rng.random(60) < 0.5, np.arange(60) // 3
    once = auroc(scores, wrong, clusters=plans)
    again = auroc(np.tile(scores, 9), np.tile(wrong, 9), clusters=np.tile(plans, 9))
    assert (once.value, *ends(once)) == pytest.approx((again.value, *ends(again)))
    assert ends(once)[0] < ends(auroc(np.tile(scores, 9), np.tile(wrong, 9)))[0]


def test_one_wrong_choice_does_not_make_an_area_certain() -> None:
    """The one with the highest score of 40 shows as little as one success of one try does."""
    scores, wrong = np.arange(40.0), np.arange(40) == 39
    area = auroc(scores, wrong)
    assert (area.value, area.method) == (1.0, "wilson-clusters")
    assert (area.low, area.high) == pytest.approx(wilson(1, 1))
    three = auroc(scores, np.arange(40) >= 37)
    assert (three.low, three.high) == pytest.approx(wilson(3, 3))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "rare"), [(40, 0.125), (200, 0.05), (40, 0.5)])
def test_auroc_of_a_yes_or_no_covers_with_few_of_one_kind(n: int, rare: float) -> None:
    """Five of 40 choices are wrong: where all five had one score, too little spread was seen."""
    rng, inside, n_intervals = np.random.default_rng(8), 0, 0
    truth = 0.5 + 0.5 * (0.7 - 0.4)  # of a score that is 1 in 70 % of the wrong and 40 % of others
    for _ in range(500):
        wrong = rng.random(n) < rare
        area = auroc((rng.random(n) < np.where(wrong, 0.7, 0.4)).astype(float), wrong)
        if area.low is not None and area.high is not None:
            n_intervals += 1
            inside += area.low <= truth <= area.high
    assert n_intervals > 450
    assert inside / n_intervals >= 0.93


def world(slope: float, seed: int, plans: int = 40) -> tuple[np.ndarray, ...]:
    """Plans of six choices; the rate of errors rises with the entropy and with the position."""
    rng = np.random.default_rng(seed)
    position = np.tile(np.arange(6.0), plans)
    entropy = rng.random(len(position)) + 0.2 * position
    rate = np.clip(0.1 + slope * (entropy - 0.2 * position) + 0.08 * position, 0, 1)
    wrong = rng.random(len(position)) < rate
    return entropy, wrong, np.repeat(np.arange(plans), 6), position


@pytest.mark.slow
def test_the_position_is_a_confounder_and_is_taken_out() -> None:
    """Entropy that only rises with the position explains nothing once the position is known."""
    inside = 0
    for seed in range(60):
        entropy, wrong, plans, position = world(0.0, seed)
        low, high = ends(slope_within(entropy, wrong, plans, positions=position))
        inside += low <= 0 <= high
    assert inside >= 54
    # without the position it looks like an effect
    assert ends(slope_within(*world(0.0, 0, plans=400)[:3]))[0] > 0


def test_a_true_slope_within_plans_is_recovered() -> None:
    entropy, wrong, plans, position = world(0.5, 2, plans=600)
    slope = slope_within(entropy, wrong, plans, positions=position)
    assert slope.value == pytest.approx(0.5, abs=0.08)
    assert ends(auroc_within(entropy, wrong, plans))[0] > 0.5


def test_no_spread_within_plans_has_no_slope_and_no_pairs() -> None:
    plans = np.array([0, 0, 1, 1])
    flat = slope_within(np.array([1.0, 1, 2, 2]), np.array([0, 1, 0, 1]), plans)
    assert (flat.value, flat.note) == (None, "scores do not differ enough within plans")
    assert auroc_within(np.arange(4.0), np.array([1, 1, 0, 0]), plans).value is None
    assert auroc(np.arange(4.0), np.ones(4)).note == "needs wrong choices and right ones"


def test_pairs_of_one_plan_alone_are_compared() -> None:
    """All plans apart the order is perfect; within plans it is upside down."""
    scores, wrong = np.array([1.0, 2, 11, 12]), np.array([1, 0, 1, 0])
    assert auroc_within(scores, wrong, np.array([0, 0, 1, 1])).value == 0.0
    assert auroc(scores, wrong).value == 0.25


def test_the_first_wrong_choice_and_its_place() -> None:
    plans, position = np.array([0] * 4 + [1] * 3 + [2] * 2), np.array([1, 2, 3, 4, 1, 2, 3, 1, 2])
    wrong = np.array([0, 1, 1, 0, 0, 0, 1, 0, 0])
    scores = np.array([0.1, 0.9, 2.0, 0.3, 0.5, 0.5, 0.5, 1.0, 2.0])
    found = first_wrong(scores, wrong, plans, position)
    assert found.by_score.value == (2 + 2) / 2  # second of four; ties of three have place 2
    assert found.by_position.value == (2 + 3) / 2
    assert found.at_random.value == (2.5 + 2) / 2
    assert found.saved.value == pytest.approx(0.25)
    assert found.saved.n_items == 2
    nothing = first_wrong(scores, np.zeros(9), plans, position)
    assert nothing.saved.note == "no plan has a wrong choice"


def test_quantiles_put_as_many_choices_into_each_bin() -> None:
    scores = np.arange(100.0) ** 3
    found = binned(scores, scores > 5000, bins=4, binning="quantiles", clusters=np.arange(100) // 4)
    assert [each.n for each in found] == [25] * 4
    assert [each.rate.value for each in found] == [0.28, 1.0, 1.0, 1.0]
    assert binned(np.zeros(3), np.ones(3), bins=4, binning="quantiles")[0].n == 3
    assert binned(np.zeros(3), np.ones(3), bins=4)[0].errors == 3
    assert binned(np.array([]), np.array([])) == ()
