"""Which items to label next: who is drawn how often, and what the labels then stand for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.errors import OptionError
from apbjudge.statistics.prediction_powered import rectify
from apbjudge.statistics.sample import Sample
from apbjudge.statistics.stratified_sampling import select, uncertainty_strata

NAN = float("nan")
NOBODY = np.zeros(60, dtype=bool)
STRATA = np.repeat(["a", "b", "c"], [30, 20, 10])
DOUBT = np.repeat([0.05, 0.3, 0.5], [30, 20, 10])


# Scheaffer, Mendenhall & Ott, Elementary Survey Sampling, chapter 5: strata of 155, 62 and 93
# households with standard deviations of 5, 15 and 10 hours get 17, 20 and 20 of 57 interviews.
def test_scheaffer_s_example_comes_out() -> None:
    from apbjudge.statistics.stratified_sampling import _allocated

    sizes = np.array([155, 62, 93])
    # p(1 - p) = (S / 30)^2 gives spreads in the proportion 5 : 15 : 10
    unsure = (1 - np.sqrt(1 - 4 * (np.array([5, 15, 10]) / 30) ** 2)) / 2
    assert _allocated(sizes, np.zeros(3, dtype=int), unsure, 57).tolist() == [17, 20, 20]


@st.composite
def pools(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    n = draw(st.integers(8, 60))
    uncertainty = np.array(draw(st.lists(st.floats(0, 1), min_size=n, max_size=n)))
    strata = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    already = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    return uncertainty, strata, already, draw(st.integers(6, n))


@given(pools(), st.booleans(), st.integers(0, 99))
def test_each_item_is_drawn_once_and_weights_add_up_to_all(
    pool: tuple[np.ndarray, np.ndarray, np.ndarray, int], already_random: bool, seed: int
) -> None:
    uncertainty, strata, already, n = pool
    result = select(uncertainty, strata, already, n, already_random=already_random, seed=seed)
    assert len(set(result.rows.tolist())) == len(result.rows) == min(n, int((~already).sum()))
    assert not already[result.rows].any()
    assert (result.all_strata[result.rows] == result.stratum).all()
    assert sum(stratum.size for stratum in result.strata) == len(uncertainty)
    stands_for = sum(s.weight * (s.planned + s.labelled) for s in result.strata)
    assert stands_for == pytest.approx(len(uncertainty))
    for h, stratum in enumerate(result.strata):
        assert stratum.planned == (result.stratum == h).sum()
        assert min(2, stratum.size) <= stratum.planned + stratum.labelled <= stratum.size
        assert (result.weight[result.stratum == h] == stratum.weight).all()
    again = select(uncertainty, strata, already, n, already_random=already_random, seed=seed)
    assert again.rows.tolist() == result.rows.tolist()


@given(pools(), st.integers(0, 99))
def test_each_beginning_is_in_proportion(
    pool: tuple[np.ndarray, np.ndarray, np.ndarray, int], seed: int
) -> None:
    uncertainty, strata, _, n = pool
    nobody = np.zeros(len(uncertainty), dtype=bool)
    result = select(uncertainty, strata, nobody, n, already_random=True, seed=seed)
    planned = np.array([stratum.planned for stratum in result.strata])
    for k in range(len(planned), len(result.rows) + 1):
        counts = np.bincount(result.stratum[:k], minlength=len(planned))
        assert counts.min() >= 1
        assert np.abs(counts - k * planned / planned.sum()).max() <= 1 + len(planned)


def test_labels_drawn_before_count_in_their_stratum() -> None:
    already = np.zeros(60, dtype=bool)
    already[30:38] = True
    result = select(DOUBT, STRATA, already, 12, already_random=True)
    assert [stratum.labelled for stratum in result.strata] == [0, 8, 0]
    assert result.strata[1].planned < result.strata[0].planned
    assert result.strata[1].weight == 20 / (8 + result.strata[1].planned)


def test_labels_picked_before_stand_for_themselves_only() -> None:
    already = np.zeros(60, dtype=bool)
    already[30:38] = True
    result = select(DOUBT, STRATA, already, 12, already_random=False)
    census = result.strata[-1]
    assert (census.name, census.size, census.labelled) == ("labelled before", 8, 8)
    assert (census.planned, census.weight) == (0, 1.0)
    assert result.strata[1].size == 12
    assert (result.all_strata[already] == 3).all()


@pytest.mark.slow
def test_what_is_selected_can_be_rectified_also_after_an_early_stop() -> None:
    rng = np.random.default_rng(12)
    covered = {12: 0, 60: 0}
    for seed in range(300):
        truth = (rng.random(600) < 0.5).astype(float)
        entropy = rng.random(600)
        judged = np.where(rng.random(600) < 0.05 + 0.3 * entropy, 1 - truth, truth)
        strata = uncertainty_strata(judged.astype(np.int8), entropy)
        picked = np.arange(600) < 20
        result = select(entropy / 2, strata, picked, 60, already_random=False, seed=seed)
        for stop in covered:
            labels = np.full(600, NAN)
            labels[result.rows[:stop]] = truth[result.rows[:stop]]
            labels[picked] = truth[picked]
            sample = Sample(strata=result.all_strata)
            estimate = rectify(judged, labels, design="stratified", sample=sample).rectified
            covered[stop] += estimate.low <= 0.5 <= estimate.high
    assert 0.92 <= covered[60] / 300 <= 0.99
    assert covered[12] / 300 >= 0.89


def test_too_few_labels_for_the_strata_are_refused() -> None:
    with pytest.raises(OptionError, match="expected at least 6, so that each of 3 strata has 2"):
        select(DOUBT, STRATA, NOBODY, 5, already_random=True)


def test_unusable_input_is_refused() -> None:
    with pytest.raises(ValueError, match="got 5, 60 and 60"):
        select(DOUBT[:5], STRATA, NOBODY, 10, already_random=True)
    for uncertainty in (DOUBT + 0.6, DOUBT * NAN):
        with pytest.raises(ValueError, match="uncertainty: expected numbers from 0 to 1"):
            select(uncertainty, STRATA, NOBODY, 10, already_random=True)
    with pytest.raises(ValueError, match="n: expected at least 1, got 0"):
        select(DOUBT, STRATA, NOBODY, 0, already_random=True)


def test_strata_are_verdict_times_thirds_of_uncertainty() -> None:
    verdict = np.array([1, 0, 1, 0, 1, 0, -1], dtype=np.int8)
    entropy = np.array([0.0, 0.1, 0.4, 0.5, 0.8, 0.9, NAN])
    expected = [f"{of}, uncertainty {i} of 3" for i in (1, 2, 3) for of in ("correct", "wrong")]
    assert uncertainty_strata(verdict, entropy).tolist() == [*expected, "unscored"]
    names = uncertainty_strata(np.ones(10, dtype=np.int8), np.array([0.0] * 8 + [0.3, 0.7]))
    assert (
        names.tolist() == ["correct, uncertainty 1 of 2"] * 8 + ["correct, uncertainty 2 of 2"] * 2
    )


@pytest.mark.parametrize("entropy", [[NAN, NAN, NAN], [0.5, 0.5, 0.1], [0.5, NAN, 0.1]])
def test_with_less_than_three_values_the_verdict_is_the_stratum(
    entropy: list[float],
) -> None:
    result = uncertainty_strata(np.array([1, 0, 1], dtype=np.int8), np.array(entropy))
    assert result.tolist() == ["correct", "wrong", "correct"]
