"""How many labels: printed values, another library, inverses, and simulated power."""

from __future__ import annotations

from math import ceil, sqrt
from statistics import NormalDist

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from statsmodels.stats.power import NormalIndPower

from apbjudge.statistics import wilson
from apbjudge.statistics.estimates import nothing
from apbjudge.statistics.proportions import counted
from apbjudge.statistics.sample_size import (
    half_width_of_rate,
    n_for_difference,
    n_for_rate,
    needed,
)

RATES = st.floats(0, 1)
WIDTHS = st.floats(0.005, 0.3)


def test_connor_s_number_comes_out() -> None:
    # powerandsamplesize.com after Connor 1987: 45 % against 5 % discordant, power 0.8, 23 pairs.
    assert n_for_difference(0.40, discordant=0.50) == 23
    assert n_for_difference(-0.40, discordant=0.50) == 23


@given(RATES, WIDTHS, st.floats(0.8, 0.99))
@example(0.0, 0.05, 0.95)
@example(1.0, 0.3, 0.95)
def test_the_number_for_a_rate_is_the_smallest_that_does(
    p: float, half_width: float, level: float
) -> None:
    n = n_for_rate(p, half_width, level=level)
    assert half_width_of_rate(p, n, level=level) <= half_width * (1 + 1e-6)
    if n > 1:
        assert half_width_of_rate(p, n - 1, level=level) > half_width * (1 - 1e-6)


@given(st.integers(1, 500), st.floats(0, 1))
def test_half_the_width_is_that_of_wilson_s_interval(n: int, share: float) -> None:
    k = round(share * n)
    low, high = wilson(k, n)
    assert half_width_of_rate(k / n, n) == pytest.approx((high - low) / 2, abs=1e-12)


@given(st.floats(0.05, 1.5), st.floats(0.6, 0.95), st.floats(0.9, 0.99))
def test_the_number_for_a_difference_agrees_with_statsmodels(
    effect: float, power: float, level: float
) -> None:
    n = n_for_difference(effect, sd=1.0, power=power, level=level)

    def found_by(n: int) -> float:
        one_sided = {"alpha": (1 - level) / 2, "alternative": "larger"}
        return float(NormalIndPower().power(effect, n, ratio=0, **one_sided))

    assert found_by(n) >= power - 1e-9
    assert n == 1 or found_by(n - 1) < power


def test_a_pilot_s_width_goes_with_the_root_of_the_number() -> None:
    pilot = counted(40, 100)
    half = (pilot.high - pilot.low) / 2
    assert needed(pilot, half) == 100
    assert needed(pilot, half / 2) == 400
    assert needed(pilot, half / 2, n_now=250) == 1000
    assert needed(nothing(), 0.05) is None


@pytest.mark.parametrize("share", [0.05, 0.1, 0.3, 0.7])
def test_all_differing_items_may_differ_one_way(share: float) -> None:
    """Then all that is missed is by chance in drawing them: no square root may round it away."""
    wanted = NormalDist().inv_cdf(0.975) * sqrt(share)
    wanted += NormalDist().inv_cdf(0.8) * sqrt(share - share**2)
    assert n_for_difference(share, discordant=share) == ceil((wanted / share) ** 2)


def test_clusters_multiply_the_number() -> None:
    plain = n_for_rate(0.3, 0.02)
    assert n_for_rate(0.3, 0.02, design_effect=4.0) == pytest.approx(plain * 4, abs=4)
    assert n_for_difference(0.1, sd=0.3, design_effect=2.0) in {141, 142}


def test_impossible_designs_are_refused() -> None:
    for ask, message in (
        (lambda: n_for_rate(0.5, float("nan")), "expected size > 0"),
        (lambda: needed(counted(1, 2), 0.0), "expected size > 0"),
        (lambda: n_for_difference(0.1), "one of discordant and sd"),
        (lambda: n_for_difference(0.1, discordant=0.05), "exceeds the discordant share"),
        (lambda: n_for_difference(0.1, sd=0.0), "sd: expected"),
        (lambda: n_for_rate(1.2, 0.05), r"p from 0 to 1, got 1\.2"),
        (lambda: half_width_of_rate(0.5, 0), "n > 0"),
    ):
        with pytest.raises(ValueError, match=message):
            ask()
