"""Rates and bounded means: Wilson, clusters, weights and strata."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.regression.linear_model import WLS

from apbjudge.statistics import modified_wilson, wilson
from apbjudge.statistics.coded import CodedItems
from apbjudge.statistics.estimates import Array
from apbjudge.statistics.jackknife import jackknife_variance
from apbjudge.statistics.proportions import bounded, bounded_ratio, counted, counted_ratio, share
from apbjudge.statistics.sample import Sample, Strata, ratio_moments
from tests.statistics.builders import ends

ROWS = st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=40)


def numbers(rows: list[tuple[bool, int]]) -> tuple[Array, Array]:
    return np.array([float(ok) for ok, _ in rows]), np.array([case for _, case in rows])


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_published_wilson_intervals(k: int, n: int, low: float, high: float) -> None:
    """Newcombe 1998 (Statistics in Medicine 17:857), table I, method 3."""
    assert wilson(k, n) == pytest.approx((low, high), abs=5e-5)
    yes = np.arange(n) < k
    if k == 1:  # the lower end is that of a Poisson mean: -log(0.95) / n
        low = 0.051293 / n
    for estimate in (
        share(yes, np.ones(n, dtype=bool), Sample()),
        share(yes.astype(float), np.ones(n), Sample(clusters=np.arange(n))),
        bounded(yes.astype(float), Sample()),
        counted_ratio(np.array([k, n - k]), np.array([1.0, 0.0]), np.ones(2)),
    ):
        assert ends(estimate) == pytest.approx((low, high), abs=5e-5)
        method = "wilson-modified" if k == 1 else "wilson"
        assert (estimate.value, estimate.method, estimate.n_items) == (k / n, method, n)


@given(st.integers(0, 60), st.integers(0, 60), st.sampled_from([0.8, 0.95, 0.99]))
def test_counted_is_wilson_s_interval_with_the_limits_of_few_successes_and_failures(
    k: int, more: int, level: float
) -> None:
    """Brown, Cai & DasGupta 2001, section 4.1: half the chi-squared quantile with 2 k degrees."""
    assume(k + more)
    n = k + more
    low, high = wilson(k, n, level=level)
    if 1 <= k <= 3:
        low = min(low, stats.chi2.ppf(1 - level, 2 * k) / (2 * n))
    if 1 <= more <= 3:
        high = max(high, 1 - stats.chi2.ppf(1 - level, 2 * more) / (2 * n))
    estimate = counted(k, n, level=level)
    assert ends(estimate) == pytest.approx((low, high), rel=1e-9)
    assert (estimate.method == "wilson") == (ends(estimate) == wilson(k, n, level=level))


@pytest.mark.parametrize("n", [1, 2, 3, 5, 10, 30, 100])
def test_rates_near_0_and_1_are_covered_where_wilson_s_own_interval_fails(n: int) -> None:
    rates = np.concatenate([np.logspace(-4, -1, 120), np.linspace(0.1, 0.5, 80)])
    k = np.arange(n + 1)

    def least(intervals: list[tuple[float, float]]) -> float:
        low, high = np.array(intervals).T
        held = (low <= rates[:, None]) & (rates[:, None] <= high)
        return float((stats.binom.pmf(k, n, rates[:, None]) * held).sum(axis=1).min())

    assert least([modified_wilson(int(i), n) for i in k]) > 0.915
    assert least([wilson(int(i), n) for i in k]) < 0.85


@pytest.mark.parametrize("weighted", [False, True])
def test_the_variance_agrees_with_a_cluster_robust_regression(weighted: bool) -> None:
    rng = np.random.default_rng(3)
    cases = rng.integers(0, 25, 200)
    values = rng.random(25)[cases] * 0.7 + rng.random(200) * 0.3
    weights = rng.random(200) + 0.5 if weighted else None
    moments = ratio_moments(values, np.ones(200), Sample(clusters=cases, weights=weights))
    theirs = WLS(values, np.ones(200), weights=np.ones(200) if weights is None else weights).fit(
        cov_type="cluster", cov_kwds={"groups": cases}
    )
    assert moments is not None
    assert moments.value == pytest.approx(theirs.params[0])
    assert moments.variance == pytest.approx(theirs.bse[0] ** 2, rel=1e-9)
    assert (moments.n_items, moments.n_clusters, moments.df) == (200, 25, 24)
    assert 1 < moments.effective_df <= 24


def test_rows_within_strata_agree_with_the_textbook_variance() -> None:
    """Cochran 1977, section 5.6: sum over strata of W_h^2 s_h^2 / n_h."""
    rng = np.random.default_rng(4)
    strata = np.repeat([0, 1, 2], [10, 20, 30])
    values = rng.random(60) * 0.2 + strata * 0.4
    held = ratio_moments(values, np.ones(60), Sample(strata=strata))
    expected = sum(
        (np.mean(strata == h) ** 2) * values[strata == h].var(ddof=1) / np.sum(strata == h)
        for h in range(3)
    )
    assert held is not None
    assert held.variance == pytest.approx(float(expected))
    assert held.df == 57


@given(ROWS)
def test_an_interval_holds_its_value_and_stays_within_bounds(rows: list[tuple[bool, int]]) -> None:
    yes, cases = numbers(rows)
    estimate = bounded(2 * yes - 1, Sample(clusters=cases), bounds=(-1.0, 1.0))
    assert estimate.value == pytest.approx(2 * yes.mean() - 1)
    if estimate.low is None:
        assert estimate.note == "one cluster shows no spread"
    else:
        low, high = ends(estimate)
        assert -1 <= low <= (estimate.value or 0) + 1e-12
        assert (estimate.value or 0) - 1e-12 <= high <= 1
        assert high - low > 1e-9


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=30))
def test_counts_of_kinds_give_what_their_rows_give(rows: list[tuple[int, int]]) -> None:
    below = np.array([b for _, b in rows], dtype=float)
    above = np.array([min(a, b) for a, b in rows], dtype=float)
    each = bounded_ratio(above, below, Sample())
    kinds, counts = np.unique(np.stack([above, below], 1), axis=0, return_counts=True)
    together = counted_ratio(counts.astype(float), kinds[:, 0], kinds[:, 1])
    assert together.value == pytest.approx(each.value)
    assert (together.low, together.high) == pytest.approx((each.low, each.high), abs=1e-9)
    assert (together.method, together.n_items) == (each.method, each.n_items)


def test_degenerate_rows_have_a_stated_outcome() -> None:
    nobody = share(np.zeros(3), np.zeros(3), Sample(weights=np.ones(3)))
    assert (nobody.value, nobody.low, nobody.note) == (None, None, "no rows")
    alone = bounded(np.array([1.0, 0.0]), Sample(clusters=np.array([7, 7])))
    assert (alone.value, alone.low, alone.note) == (0.5, None, "one cluster shows no spread")
    flat, unseen = bounded(np.full(6, 0.6), Sample()), wilson(0, 6)[1]
    assert ends(flat) == pytest.approx((0.6 * (1 - unseen), 0.6 * (1 - unseen) + unseen))
    same = bounded(np.ones(12), Sample(clusters=np.repeat([1, 2, 3], 4)))
    assert ends(same) == wilson(3, 3)
    assert same.method == "wilson-clusters"
    assert same.note.startswith("3 clusters")


def planned(seed: int, n: int = 400) -> tuple[Array, Array, Sample]:
    """Yes or no among some of the rows of three strata that were drawn with unequal chances."""
    rng = np.random.default_rng(seed)
    of_all = rng.choice(3, 4 * n, p=[0.6, 0.3, 0.1])
    rows = np.concatenate([np.flatnonzero(of_all == s)[: n // 3] for s in range(3)])
    strata = of_all[rows]
    sizes, drawn = np.bincount(of_all), np.bincount(strata)
    among = (rng.random(len(rows)) < 0.7 - 0.2 * strata).astype(float)
    yes = among * (rng.random(len(rows)) < 0.95 - 0.45 * strata)
    sample = Sample(
        weights=(sizes / drawn)[strata], strata=strata, design=Strata.counted(strata, of_all, None)
    )
    return yes, among, sample


@pytest.mark.parametrize("seed", range(3))
def test_the_variance_under_a_plan_is_that_of_the_jackknife_of_all_drawn_rows(seed: int) -> None:
    """Another way to the same: one drawn row left out at a time, those that don't count too."""
    yes, among, sample = planned(seed)
    exact = Sample(weights=sample.weights, strata=sample.strata)  # shares taken as known
    moments = ratio_moments(yes, among, exact)
    items = CodedItems((among + yes).astype(np.int64), 3, exact)
    variance, _ = jackknife_variance(items.strata, lambda t: t[..., 2] / (t[..., 1] + t[..., 2]))
    assert moments is not None
    assert moments.variance == pytest.approx(variance, rel=0.03)
    alone = Sample(weights=exact.weights[among > 0], strata=exact.strata[among > 0])
    forgetful = ratio_moments(yes[among > 0], among[among > 0], alone)
    assert forgetful is not None
    assert forgetful.variance < 0.9 * variance


def test_one_outcome_alone_may_hide_another_in_the_heaviest_stratum() -> None:
    """All 40 rows of the light stratum that count are yes; the heavy one has none that count."""
    strata = np.repeat([0, 1], [50, 50])
    of_all = np.repeat([0, 1], [100, 900])
    among = np.append(np.ones(40), np.zeros(60))
    weights = np.repeat([2.0, 18.0], 50)
    design = Strata.counted(strata, of_all, None)
    estimate = share(among, among, Sample(weights=weights, strata=strata, design=design))
    assert estimate.value == 1
    assert ends(estimate) == pytest.approx(wilson(40 / 9, 40 / 9))


# Wilson's interval -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "n", "level"), [(-1, 5, 0.95), (6, 5, 0.95), (float("nan"), 5, 0.95), (1, 5, 0.0)]
)
def test_impossible_input_is_named(k: float, n: float, level: float) -> None:
    with pytest.raises(ValueError, match=rf"wilson: .*k={k} n={n} level={level}"):
        wilson(k, n, level=level)
