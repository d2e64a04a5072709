"""Resampled counts, the jackknife, percentile and BCa."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from apbjudge.statistics.agreement import cohen_kappa, phi
from apbjudge.statistics.bootstrap import RATIO, Measure, difference_of_ratios
from apbjudge.statistics.coded import CodedItems
from apbjudge.statistics.differences import paired_test, part_difference
from apbjudge.statistics.estimates import Array, Estimate, Ids
from apbjudge.statistics.jackknife import jackknife
from apbjudge.statistics.paired import compare_ratios
from apbjudge.statistics.proportions import bounded, ratio_of_sums, share
from apbjudge.statistics.sample import METHODS, IntervalSettings, Method, Sample, tabulate
from tests.statistics.builders import ends, square

CODES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=2, max_size=40)
PLAIN = Sample()


KAPPA = square(cohen_kappa)


def first_share(counts: Array) -> Array:
    total = counts.sum(axis=-1)
    return counts[..., 0] / np.where(total > 0, total, np.nan)


def codes_of(*counts: int) -> Ids:
    return np.repeat(np.arange(len(counts)), counts)


@given(CODES, st.permutations(range(5)), st.integers(0, 2**32 - 1))
def test_neither_order_nor_names_of_clusters_matter(
    rows: list[tuple[int, int]], names: list[int], seed: int
) -> None:
    codes, cases = (np.array(part) for part in zip(*rows, strict=True))
    order = np.random.default_rng(seed).permutation(len(rows))
    renamed = 3 * np.array(names, dtype=np.int32)[cases]  # with gaps
    for method in METHODS:
        settings = IntervalSettings(method=method, n_resamples=50)
        first = CodedItems(codes, 4, Sample(clusters=cases)).measure(KAPPA, settings)
        second = CodedItems(codes[order], 4, Sample(clusters=renamed[order])).measure(
            KAPPA, settings
        )
        assert first == second


@pytest.mark.parametrize("clustered", [False, True])
def test_the_jackknife_is_that_of_a_loop_over_units(clustered: bool) -> None:
    rng = np.random.default_rng(8)
    cases = rng.integers(0, 20, 120) if clustered else np.arange(120)
    codes = rng.choice(4, 120, p=[0.5, 0.1, 0.1, 0.3])
    without = [
        cohen_kappa_score(codes[cases != case] // 2, codes[cases != case] % 2)
        for case in np.unique(cases)
    ]
    n = len(without)
    error = ((n - 1) / n * np.sum((np.array(without) - np.mean(without)) ** 2)) ** 0.5
    strata = tabulate(codes, 4, Sample(clusters=cases))
    unbounded = jackknife(strata, KAPPA, n_items=120, bounds=None)
    low, high = ends(unbounded)
    value = cohen_kappa_score(codes // 2, codes % 2)
    assert unbounded.value == pytest.approx(value)
    assert (low + high) / 2 == pytest.approx(value)
    quantiles = stats.t.ppf(0.975, [n - 1, 2])
    assert quantiles[0] * error - 1e-9 <= (high - low) / 2 <= quantiles[1] * error


@given(st.lists(st.integers(0, 25), min_size=4, max_size=4), st.sampled_from(METHODS))
def test_intervals_hold_their_value_or_say_why_there_is_none(
    counts: list[int], method: Method
) -> None:
    settings = IntervalSettings(method=method, n_resamples=200)
    for measure in (KAPPA, square(phi), first_share):
        estimate = CodedItems(codes_of(*counts), 4, PLAIN).measure(measure, settings)
        if estimate.low is None:
            assert estimate.high is None
            assert estimate.note
        else:
            low, high = ends(estimate)
            assert -1 <= low <= (estimate.value or 0) <= high <= 1
            assert high > low


def test_no_interval_without_spread_or_where_resamples_are_undefined() -> None:
    def noted(*counts: int, method: Method, measure: Callable[[Array], Array] = KAPPA) -> str:
        estimate = CodedItems(codes_of(*counts), 4, PLAIN).measure(
            measure, IntervalSettings(method=method)
        )
        assert estimate.value is not None
        assert estimate.low is None
        return estimate.note

    assert noted(8, 0, 0, 8, method="jackknife") == "it is the same whichever items are left out"
    assert noted(8, 0, 0, 8, method="percentile") == "it is the same whichever items are left out"
    assert "of resamples: too few" in noted(20, 0, 0, 1, method="bca")
    assert "leaves it undefined" in noted(20, 3, 1, 0, method="jackknife", measure=square(phi))
    one = CodedItems(codes_of(3, 2), 2, Sample(clusters=np.zeros(5))).measure(
        first_share, IntervalSettings()
    )
    assert (one.value, one.note) == (pytest.approx(0.6), "one unit shows no spread")


@pytest.mark.parametrize(("k", "n"), [(0, 12), (3, 20), (40, 50), (100, 100)])
def test_jeffreys_interval_of_a_rate_is_that_of_the_beta_distribution(k: int, n: int) -> None:
    """Brown, Cai & DasGupta 2001, section 3.1.3: quantiles of Beta(k + 1/2, n - k + 1/2)."""
    items = CodedItems(np.repeat([0, 1], [n - k, k]), 2, Sample())
    estimate = items.measure(
        lambda t: t[..., 1] / t.sum(axis=-1),
        IntervalSettings(n_resamples=40_000),
        prior=np.array([0.5, 0.5]),
    )
    low, high = stats.beta.ppf([0.025, 0.975], k + 0.5, n - k + 0.5)
    assert estimate.low == pytest.approx(min(low, k / n), abs=0.004)
    assert estimate.high == pytest.approx(max(high, k / n), abs=0.004)
    assert (estimate.method, estimate.n_items, estimate.n_resamples) == ("jeffreys", n, 40_000)


# Every figure -------------------------------------------------------------------------------------


def _by_case() -> tuple[Ids, Array, Array, Array, Array]:
    """Columns of 300 rows in 40 cases, and what each case adds to the sums of each figure."""
    rng = np.random.default_rng(3)
    cases = np.append(np.arange(40), rng.integers(0, 40, 260))
    yes = (rng.random(300) < rng.beta(2, 2, 40)[cases]).astype(float)
    other = np.where(rng.random(300) < 0.7, yes, 1 - yes)
    calls = 1.0 + rng.poisson(3, 300)
    found = np.minimum(calls, rng.poisson(1 + yes))
    return cases, yes, other, calls, found


CASES, YES, OTHER, CALLS, FOUND = _by_case()
ONES = np.ones(300)
FIRST: Ids = CALLS > 3
MADE: dict[str, tuple[Callable[[Sample], Estimate], list[Array], Measure]] = {
    "share of some": (lambda s: share(YES * OTHER, OTHER, s), [YES * OTHER, OTHER], RATIO),
    "ratio of totals": (lambda s: ratio_of_sums(FOUND, CALLS, s), [FOUND, CALLS], RATIO),
    "difference": (lambda s: paired_test(YES - OTHER, s).estimate, [YES - OTHER, ONES], RATIO),
    "difference of ratios": (
        lambda s: compare_ratios("x", (FOUND, CALLS), (YES, CALLS), s).difference,
        [FOUND, CALLS, YES, CALLS],
        difference_of_ratios,
    ),
    "difference of parts": (
        lambda s: part_difference(YES, FIRST, ~FIRST, s).estimate,
        [YES * FIRST, 1.0 * FIRST, YES * ~FIRST, 1.0 * ~FIRST],
        difference_of_ratios,
    ),
}


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("name", MADE)
def test_every_kind_of_figure_is_resampled_by_case_as_scipy_does(name: str, method: Method) -> None:
    make, columns, measure = MADE[name]
    sums = [np.bincount(CASES, column) for column in columns]
    theirs = stats.bootstrap(
        sums,
        lambda *parts, axis: measure(np.stack([part.sum(axis=axis) for part in parts], axis=-1)),
        paired=True,
        vectorized=True,
        method=method,
        n_resamples=5_000,
        rng=6,
    ).confidence_interval
    settings = IntervalSettings(method=method, n_resamples=5_000, seed=42)
    sample = settings.of(Sample(clusters=CASES))
    ours, usual = make(sample), make(Sample(clusters=CASES))
    assert ends(ours) == pytest.approx(tuple(theirs), abs=0.08 * (theirs.high - theirs.low))
    for field in ("value", "n_items", "n_clusters"):
        assert getattr(ours, field) == getattr(usual, field)
    assert (ours.method, ours.n_resamples, ours.seed) == (method, 5_000, 42)
    assert make(sample) == ours
    assert ends(make(replace(sample, resampling=replace(settings, seed=43)))) != ends(ours)


def test_strata_and_weights_are_resampled_within_strata() -> None:
    """A stratum whose rows are all alike adds nothing, however many rows it has."""
    yes = np.concatenate([np.ones(300), np.arange(40) % 2])
    strata, weights = np.repeat([0, 1], [300, 40]), np.repeat([1.0, 5.0], [300, 40])
    settings = IntervalSettings(method="percentile", n_resamples=4000)
    made = bounded(yes, settings.of(Sample(strata=strata, weights=weights)))
    low, high = ends(bounded(yes[300:], settings.of()))
    assert made.value == pytest.approx(0.8)
    assert ends(made) == pytest.approx(((3 + 2 * low) / 5, (3 + 2 * high) / 5), abs=0.01)
