"""Corrected rates: by hand, their laws, what they refuse, and their coverage for each design."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from apbjudge.errors import OptionError
from apbjudge.statistics.prediction_powered import Rectified, rectify, rogan_gladen
from apbjudge.statistics.sample import Sample

NAN = math.nan
Z2 = 1.959963984540054**2


def items(
    rng: np.random.Generator, n: int, rate: float, sensitivity: float, specificity: float
) -> tuple[np.ndarray, np.ndarray]:
    """What humans would say, and what the judge says."""
    truth = (rng.random(n) < rate).astype(float)
    right = rng.random(n) < np.where(truth == 1, sensitivity, specificity)
    return truth, np.where(right, truth, 1 - truth)


def only(truth: np.ndarray, rows: np.ndarray) -> np.ndarray:
    labels = np.full(len(truth), NAN)
    labels[rows] = truth[rows]
    return labels


def drawn(rng: np.random.Generator, truth: np.ndarray, n: int) -> np.ndarray:
    return only(truth, rng.choice(len(truth), n, replace=False))


def test_ppi_with_tuning_by_hand() -> None:
    judged = np.array([1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0])
    labels = np.array([1.0, 0.0, 0.0, 0.0, NAN, NAN, NAN, NAN])
    covariance = 1 / 4 - 2 / 4 * 1 / 4
    power = covariance / (2 * (5 / 8 * 3 / 8 * 8 / 7))
    result = rectify(judged, labels, design="random")
    assert result.power == pytest.approx(power, rel=1e-12)
    assert result.rectified.value == pytest.approx(1 / 4 + power * (3 / 4 - 2 / 4), rel=1e-12)


def test_strata_are_weighted_by_their_size() -> None:
    judged = np.array([1.0] * 60 + [0.0] * 40)
    strata = judged.astype(int)
    labels = np.full(100, NAN)
    labels[:20] = [1.0] * 15 + [0.0] * 5
    labels[60:70] = [1.0] + [0.0] * 9
    result = rectify(judged, labels, design="stratified", sample=Sample(strata=strata))
    value = 0.6 * 15 / 20 + 0.4 * 1 / 10
    assert result.rectified.value == pytest.approx(value)
    assert result.labelled_only.value == pytest.approx(value)


def test_weights_are_hajek_s() -> None:
    judged = np.array([0.2, 0.4, 0.9, 0.5, 0.5, 0.1])
    labels = np.array([0.4, 0.4, NAN, 0.9, NAN, NAN])
    weights = np.array([1.0, 3.0, 9.0, 2.0, 9.0, 9.0])
    result = rectify(
        judged, labels, design="weighted", sample=Sample(weights=weights), power_tuned=False
    )
    lacking = (0.2 * 1 + 0.0 * 3 + 0.4 * 2) / 6
    assert result.rectified.value == pytest.approx(judged.mean() + lacking)
    assert result.labelled_only.value == pytest.approx((0.4 + 3 * 0.4 + 2 * 0.9) / 6)


@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
def test_neither_order_nor_copies_in_a_cluster_change_anything(seed: int, copies: int) -> None:
    rng = np.random.default_rng(seed)
    truth, judged = items(rng, 80, 0.4, 0.8, 0.9)
    labels = drawn(rng, truth, 30)
    once = rectify(judged, labels, design="random").rectified
    order = rng.permutation(80 * copies)
    again = rectify(
        np.repeat(judged, copies)[order],
        np.repeat(labels, copies)[order],
        design="random",
        sample=Sample(clusters=np.repeat(np.arange(80), copies)[order]),
    ).rectified
    assert again.value == pytest.approx(once.value, abs=0.005)
    assert (again.low, again.high) == pytest.approx((once.low, once.high), abs=0.005)
    assert (again.n_items, again.n_clusters) == (80 * copies, 80)


@pytest.mark.slow
@pytest.mark.parametrize(("share", "per_case"), [(0.6, 1), (0.9, 1), (0.6, 3)])
def test_a_judge_that_knows_nothing_adds_no_labels_and_a_good_one_as_many_as_it_is_worth(
    share: float, per_case: int
) -> None:
    rng = np.random.default_rng(6)
    n, n_labelled, times = 900, 90, 300
    cases = np.repeat(np.arange(n // per_case), per_case)
    results: dict[str, list[Rectified]] = {"useless": [], "good": []}
    for _ in range(times):
        truth, good = items(rng, n, share, 0.9, 0.9)
        useless = (rng.random(n) < share).astype(float)
        at = np.isin(cases, rng.choice(n // per_case, n_labelled // per_case, replace=False))
        labels, sample = np.where(at, truth, NAN), Sample(clusters=cases)
        for name, judged in (("useless", useless), ("good", good)):
            results[name].append(rectify(judged, labels, design="random", sample=sample))
    added = {name: np.array([of.added for of in own]) for name, own in results.items()}
    assert np.mean(added["useless"] > 0) < 0.09
    assert added["useless"].mean() < 0.02 * n_labelled
    assert np.mean(added["good"] > 0) > 0.95
    # what it is said to be worth shows in how much the two estimates vary
    worth = np.mean([of.worth for of in results["good"]]) / n_labelled
    varies = [
        np.var([getattr(of, name).value for of in results["good"]])
        for name in ("labelled_only", "rectified")
    ]
    assert worth == pytest.approx(varies[0] / varies[1], rel=0.35)


def test_a_judge_that_was_always_right_is_not_taken_for_perfect() -> None:
    truth, judged = items(np.random.default_rng(5), 1000, 0.4, 1.0, 1.0)
    sample = Sample(strata=np.arange(1000) % 2)
    result = rectify(judged, only(truth, np.arange(5)), design="stratified", sample=sample)
    assert result.rectified.high - result.rectified.low >= 1.9 / 5
    assert result.worth >= 0.999 * 5


def test_labels_that_are_all_the_same_speak_for_themselves() -> None:
    judged = np.random.default_rng(1).integers(0, 6, 100) / 5
    labels = only(np.full(100, 0.6), np.arange(25))
    result = rectify(judged, labels, design="random")
    assert result.rectified.value == pytest.approx(0.6)
    own = result.labelled_only
    assert (result.rectified.low, result.rectified.high) == (own.low, own.high)
    assert result.rectified.note.startswith("all labels are the same")
    assert result.power == 0.0
    heavy = Sample(weights=np.where(np.arange(100) < 5, 10.0, 1.0))
    weighted = rectify(judged, labels, design="weighted", sample=heavy).rectified
    assert weighted.high - weighted.low > result.rectified.high - result.rectified.low


@pytest.mark.parametrize(
    ("labels", "value", "note"),
    [
        ([NAN] * 6, None, "no labels"),
        ([1, 0, 1, NAN, NAN, NAN], None, "no label in 1 of 3 strata, which hold 2 of 6 rows"),
        ([1, NAN, 0, NAN, 0, NAN], 1 / 3, "too few labels to show a spread"),
    ],
)
def test_strata_with_too_few_labels_have_no_interval(
    labels: list[float], value: float | None, note: str
) -> None:
    sample = Sample(strata=np.arange(6) // 2)
    result = rectify(np.ones(6), np.array(labels), design="stratified", sample=sample)
    assert result.rectified.value == (value if value is None else pytest.approx(value))
    assert (result.rectified.low, result.worth) == (None, None)
    assert result.rectified.note == note


def test_a_correction_beyond_the_bounds_is_cut_and_said_so() -> None:
    judged = np.array([1.0] * 30 + [0.0] * 70)
    labels = np.full(100, NAN)
    labels[[0, 1, 2, 3, 4, 5, 6, 7, 30, 31]] = [0.0] * 7 + [1.0, 0.0, 0.0]
    result = rectify(judged, labels, design="random", power_tuned=False).rectified
    assert (result.value, result.low) == (0.0, 0.0)
    assert "cut off" in result.note
    assert 0 < result.high < 1


@st.composite
def calls(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, str, Sample]:
    n = draw(st.integers(1, 25))
    values = st.sampled_from(draw(st.sampled_from([(0.0, 1.0), (0.0, 0.2, 0.6, 1.0), (0.6, 0.6)])))
    judged = np.array(draw(st.lists(values, min_size=n, max_size=n)))
    labels = draw(st.lists(st.one_of(st.just(NAN), values), min_size=n, max_size=n))
    design = draw(st.sampled_from(["random", "stratified", "weighted", "other-population"]))
    ids = st.lists(st.integers(0, 3), min_size=n, max_size=n)
    weights = st.lists(st.sampled_from([0.5, 1.0, 8.0]), min_size=n, max_size=n)
    sample = Sample(
        clusters=np.array(draw(ids)) if draw(st.booleans()) else None,
        strata=np.array(draw(ids)) if design == "stratified" else None,
        weights=np.array(draw(weights)) if design == "weighted" else None,
    )
    return judged, np.array(labels), design, sample


@settings(max_examples=25)
@given(calls(), st.booleans())
@example((np.array([1.0]), np.array([1.0]), "random", Sample()), True)
def test_whatever_comes_in_what_comes_out_is_in_order(
    call: tuple[np.ndarray, np.ndarray, str, Sample], tuned: bool
) -> None:
    judged, labels, design, sample = call
    result = rectify(judged, labels, design=design, sample=sample, power_tuned=tuned)  # type: ignore[arg-type]
    for estimate in (result.raw, result.rectified, result.labelled_only):
        if estimate.value is None:
            assert estimate.note
            assert estimate.low is None
        elif estimate.low is None:
            assert estimate.note
            assert 0 <= estimate.value <= 1
        else:
            low, value, high = estimate.low, estimate.value, estimate.high
            assert -1e-12 <= low <= value + 1e-12 <= high + 2e-12 <= 1 + 1e-11
            assert high > low
    assert result.power is None or 0 <= result.power <= 1
    assert result.worth is None or result.worth > 0


ONES = np.ones(4)
SOME = np.array([1.0, 0.0, NAN, NAN])


def test_what_does_not_fit_its_design_is_refused() -> None:
    for design, sample, message in (
        ("hand-picked", Sample(), "picked by hand say nothing about the items"),
        ("convenient", Sample(), "expected one of random, .*got 'convenient'"),
        ("stratified", Sample(), "need the strata"),
        ("random", Sample(strata=ONES), "neither strata nor weights"),
    ):
        with pytest.raises(OptionError, match=message):
            rectify(ONES, SOME, design=design, sample=sample)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="labels: expected numbers from"):
        rectify(ONES, 2 * SOME, design="random")
    with pytest.raises(ValueError, match="labels: expected 4 entries, got 3"):
        rectify(ONES, SOME[:3], design="random")


def covered(results: list[Rectified], rate: float, name: str = "rectified") -> float:
    """Share of the intervals of this name that hold the rate."""
    estimates = [getattr(result, name) for result in results]
    return float(np.mean([of.low <= rate <= of.high for of in estimates]))


@pytest.mark.parametrize(
    ("n", "rate", "right"),
    [(30, 0.5, (0.98, 0.7)), (100, 0.05, (0.98, 0.7)), (30, 0.3, (0.97, 0.97))],
)
def test_random_labels_make_a_judge_s_rate_right(
    n: int, rate: float, right: tuple[float, float]
) -> None:
    rng, results = np.random.default_rng(1000 * n), []
    for _ in range(400):
        truth, judged = items(rng, 5 * n, rate, *right)
        results.append(rectify(judged, drawn(rng, truth, n), design="random"))
    assert 0.925 <= covered(results, rate) <= 0.99
    assert 0.92 <= covered(results, rate, "labelled_only") <= 0.99
    assert right[0] == right[1] or covered(results, rate, "raw") < 0.8


@pytest.mark.slow
def test_weighted_draws_are_covered() -> None:
    rng, results = np.random.default_rng(20), []
    for _ in range(400):
        truth, judged = items(rng, 900, 0.4, 0.85, 0.8)
        chance = np.where(judged == 1, 0.08, 0.2)
        labels = only(truth, np.flatnonzero(rng.random(900) < chance))
        results.append(
            rectify(judged, labels, design="weighted", sample=Sample(weights=1 / chance))
        )
    assert 0.93 <= covered(results, 0.4) <= 0.995


def test_rogan_and_gladen_s_estimate_comes_out_as_printed() -> None:
    # The examples of epi.prev in the R package epiR: 23 of 150 cows, sensitivity 0.96,
    # specificity 0.89 give 5.1 per 100; 6 of 151 with 0.964 and 0.927 give 0 per 100.
    result = rogan_gladen(23, 150, tp=96, n_pos=100, tn=89, n_neg=100)
    assert round(100 * result.value, 1) == 5.1
    assert rogan_gladen(6, 151, tp=964, n_pos=1000, tn=927, n_neg=1000).value == 0.0


def test_lang_and_reiczigel_s_interval_by_hand() -> None:
    result = rogan_gladen(60, 200, tp=36, n_pos=40, tn=51, n_neg=60)
    apparent = (60 + Z2 / 2) / (200 + Z2)
    sensitivity, specificity = 37 / 42, 52 / 62
    youden = 37 / 42 + 52 / 62 - 1
    p = (apparent + 52 / 62 - 1) / youden
    hits, passes = sensitivity * 5 / 42 / 42, specificity * 10 / 62 / 62
    shift = 2 * Z2 * (p * hits - (1 - p) * passes)
    variance = apparent * (1 - apparent) / (200 + Z2) + p * p * hits + (1 - p) ** 2 * passes
    half = math.sqrt(Z2 * variance) / youden
    assert result.value == pytest.approx((0.3 + 0.85 - 1) / 0.75)
    assert (result.low, result.high) == pytest.approx((p + shift - half, p + shift + half))


def test_where_the_correction_can_t_be_had_the_reason_is_given() -> None:
    useless = rogan_gladen(5, 10, tp=5, n_pos=10, tn=5, n_neg=10)
    few = rogan_gladen(5, 10, tp=1, n_pos=1, tn=1, n_neg=100)
    for result, note in ((useless, "no better than chance"), (few, "too few labels")):
        assert (result.value, result.low, result.high) == (None, None, None)
        assert note in result.note


def test_labels_of_another_population_are_not_counted_in_the_rate() -> None:
    target = np.array([1.0] * 60 + [0.0] * 140)
    judged = np.concatenate([target, [1.0] * 36, [0.0] * 4, [1.0] * 9, [0.0] * 51])
    labels = np.concatenate([np.full(200, NAN), np.ones(40), np.zeros(60)])
    result = rectify(judged, labels, design="other-population")
    expected = rogan_gladen(60, 200, tp=36, n_pos=40, tn=51, n_neg=60)
    assert result.rectified == expected
    assert (result.raw.value, result.raw.n_items) == (0.3, 200)
    assert result.labelled_only.value is None
    assert result.labelled_only.note.startswith("the labels are of another population")


def test_grades_are_not_corrected_with_another_population_s_labels() -> None:
    judged = np.array([0.2, 0.4, 1.0, 0.0])
    result = rectify(judged, np.array([0.2, 0.4, NAN, NAN]), design="other-population")
    assert result.rectified.value is None
    assert "0 and 1 only" in result.rectified.note


@pytest.mark.slow
def test_another_prevalence_is_covered_while_ppi_would_miss() -> None:
    rng, results, ppi = np.random.default_rng(21), [], []
    for _ in range(400):
        here, judged_here = items(rng, 400, 0.1, 0.9, 0.85)
        there, judged_there = items(rng, 150, 0.6, 0.9, 0.85)
        judged = np.concatenate([judged_here, judged_there])
        labels = np.concatenate([np.full(len(here), NAN), there])
        results.append(rectify(judged, labels, design="other-population"))
        ppi.append(rectify(judged, labels, design="random"))
    assert 0.93 <= covered(results, 0.1) <= 0.995
    assert covered(ppi, 0.1) < 0.5


def test_copies_in_clusters_do_not_narrow_the_correction() -> None:
    rng = np.random.default_rng(9)
    truth, judged = items(rng, 400, 0.4, 0.9, 0.85)
    labels = only(truth, np.arange(150))
    once = rectify(judged, labels, design="other-population").rectified
    copies = (np.repeat(each, 4) for each in (judged, labels))
    sample = Sample(clusters=np.repeat(np.arange(400), 4))
    again = rectify(*copies, design="other-population", sample=sample).rectified
    assert again.value == pytest.approx(once.value)
    assert (again.low, again.high) == pytest.approx((once.low, once.high), abs=0.002)
    assert (again.n_items, again.n_clusters) == (1000, 250)


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="got 11 of 10"):
        rogan_gladen(11, 10, tp=1, n_pos=2, tn=1, n_neg=2)
