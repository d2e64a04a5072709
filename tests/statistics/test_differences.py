"""Paired and unpaired differences: printed values, other libraries, laws, size and coverage."""

from __future__ import annotations

from math import comb, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar as reference_mcnemar
from statsmodels.stats.multitest import multipletests

from apbjudge.statistics.differences import adjust, detectable_difference, mcnemar, paired_test
from apbjudge.statistics.sample import Sample

COUNTS = st.integers(0, 400)


def paired(b: int, c: int, n: int) -> np.ndarray:
    """b times +1, c times -1, the rest 0."""
    return np.repeat([1.0, -1.0, 0.0], [b, c, n - b - c])


@given(COUNTS, COUNTS)
def test_mcnemar_agrees_with_statsmodels_and_with_a_sum(b: int, c: int) -> None:
    result = mcnemar(b, c)
    if b + c:
        reference = float(reference_mcnemar([[0, b], [c, 0]], exact=True).pvalue)
        assert result.p_exact == pytest.approx(reference, rel=1e-9)
    point = comb(b + c, b) / 2 ** (b + c)
    assert result.p_mid == pytest.approx(
        2 * sum(comb(b + c, k) for k in range(min(b, c) + 1)) / 2 ** (b + c) - point, rel=1e-9
    )


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(ValueError, match="b=-1 c=3"):
        mcnemar(-1, 3)


def test_bonett_and_price_s_standard_error_comes_out() -> None:
    # The example of se.prop.ps in the R package vcmeta (by Bonett): 64 and 5 discordant of
    # 100 give 0.5784314 and 0.05953213.
    result = paired_test(paired(64, 5, 100), Sample())
    error = result.detectable / (1.959964 + 0.841621)
    assert error == pytest.approx(0.05953213, rel=1e-6)
    middle = (result.estimate.low + result.estimate.high) / 2
    assert middle == pytest.approx(0.5784314, abs=5e-8)
    assert result.estimate.value == pytest.approx(0.59)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(2, 60))
def test_without_clusters_it_is_bonett_and_price_with_t(b: int, c: int, rest: int) -> None:
    from scipy.stats import t

    n = b + c + rest
    plus, minus = (b + 1) / (n + 2), (c + 1) / (n + 2)
    error = sqrt((plus + minus - (plus - minus) ** 2) / (n + 2))
    result = paired_test(paired(b, c, n), Sample())
    assert result.p_value == pytest.approx(2 * t.sf(abs(plus - minus) / error, n - 1), rel=1e-9)
    half = t.ppf(0.975, n - 1) * error
    assert result.estimate.low == pytest.approx(max(-1, plus - minus - half), abs=1e-9)
    assert result.estimate.high == pytest.approx(min(1, plus - minus + half), abs=1e-9)


@given(st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_copies_of_items_add_nothing_when_they_share_a_cluster(copies: int, seed: int) -> None:
    differences = np.random.default_rng(seed).integers(-1, 2, 20).astype(float)
    once = paired_test(differences, Sample())
    again = paired_test(
        np.repeat(differences, copies), Sample(clusters=np.repeat(np.arange(20), copies))
    )
    assert again.p_value == pytest.approx(once.p_value, rel=1e-9)
    assert again.estimate.low == pytest.approx(once.estimate.low, abs=1e-9)
    assert (again.estimate.n_items, again.estimate.n_clusters) == (20 * copies, 20)


@given(st.lists(st.sampled_from([-1.0, -0.4, 0.0, 0.2, 1.0]), min_size=2, max_size=40))
def test_interval_and_p_value_say_the_same(values: list[float]) -> None:
    result = paired_test(np.array(values), Sample())
    mirrored = paired_test(-np.array(values), Sample())
    low, high = result.estimate.low, result.estimate.high
    assert -1 <= low <= result.estimate.value <= high <= 1
    assert low < high
    assert (mirrored.estimate.low, mirrored.estimate.high) == pytest.approx((-high, -low))
    if result.p_value < 0.05:
        assert not low < 0 < high
    elif result.p_value > 0.0501:
        assert low <= 0 <= high


@pytest.mark.parametrize("same", [0.0, 1.0])
def test_differences_without_spread_still_have_an_interval(same: float) -> None:
    result = paired_test(np.full(10, same), Sample())
    assert result.estimate.value == same
    assert result.estimate.high - result.estimate.low > 0.2
    assert (result.p_value == 1.0) == (same == 0.0)


def exact_coverage(n: int, psi: float, difference: float) -> float:
    """Chance that the 95 % interval of independent pairs holds the true difference."""
    plus, minus = (psi + difference) / 2, (psi - difference) / 2
    covered = 0.0
    for b in range(n + 1):
        for c in range(n + 1 - b):
            chance = comb(n, b) * comb(n - b, c) * plus**b * minus**c * (1 - psi) ** (n - b - c)
            if chance > 1e-7:
                estimate = paired_test(paired(b, c, n), Sample()).estimate
                covered += chance * (estimate.low <= difference <= estimate.high)
    return covered


@pytest.mark.parametrize(
    ("n", "psi", "difference"),
    [(30, 0.1, 0.0), (30, 0.2, 0.2), (50, 0.1, 0.1), (100, 0.05, 0.04), (100, 0.05, 0.0)],
)
def test_few_discordant_items_are_covered(n: int, psi: float, difference: float) -> None:
    assert 0.935 <= exact_coverage(n, psi, difference) <= 1


@settings(max_examples=10)  # statsmodels takes 60 ms a Holm
@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=12))
def test_adjusted_p_values_agree_with_statsmodels(p_values: list[float | None]) -> None:
    tested = [p for p in p_values if p is not None]
    for ours, theirs in (("holm", "holm"), ("bh", "fdr_bh"), ("by", "fdr_by")):
        result = adjust(p_values, method=ours)
        assert [p is None for p in result] == [p is None for p in p_values]
        got = [p for p in result if p is not None]
        if tested:
            assert got == pytest.approx(multipletests(tested, method=theirs)[1].tolist())
        assert all(a >= p - 1e-15 for a, p in zip(got, tested, strict=True))


def test_detectable_difference_by_hand() -> None:
    assert detectable_difference(1.0) == pytest.approx(1.959964 + 0.841621, abs=1e-6)
    assert detectable_difference(0.0) == 0.0


def test_where_nothing_can_be_said_it_is_said_why() -> None:
    none, one = paired_test(np.zeros(0), Sample()), paired_test(np.ones(1), Sample())
    one_case = paired_test(np.array([1.0, 0.0]), Sample(clusters=np.array([4, 4])))
    for result, note in ((none, "no rows"), (one, "too few units"), (one_case, "too few units")):
        assert (result.p_value, result.detectable, result.estimate.low) == (None, None, None)
        assert result.estimate.note.startswith(note)


def test_impossible_values_are_refused() -> None:
    for bad in (1.5, np.nan):
        with pytest.raises(ValueError, match="differences: expected numbers from"):
            paired_test(np.array([0.0, bad]), Sample())
    for p, method in ((1.2, "holm"), (np.nan, "bh"), (0.1, "sidak")):
        with pytest.raises(ValueError, match="adjust"):
            adjust([p], method=method)
    with pytest.raises(ValueError, match="detectable"):
        detectable_difference(-1.0)
