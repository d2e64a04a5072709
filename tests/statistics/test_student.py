"""Student's distribution against scipy's, and by its own laws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtr, stdtrit

from apbjudge.statistics.student import t_cdf, t_quantile

DF = [1, 1.5, 2, 2.7, 3, 5, 9.3, 30, 59, 199, 201, 719, 5e3, 9.9e4, 1.1e5, 1e7]


@pytest.mark.parametrize("df", DF)
@pytest.mark.parametrize("p", [0.0005, 0.025, 0.4, 0.5, 0.75, 0.9, 0.975, 0.995, 0.9999])
def test_quantiles_are_scipy_s(p: float, df: float) -> None:
    assert t_quantile(p, df) == pytest.approx(float(stdtrit(df, p)), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("df", DF)
@pytest.mark.parametrize("t", [-40.0, -3.0, -0.1, 0.0, 0.5, 1.96, 12.0, 500.0])
def test_chances_are_scipy_s(t: float, df: float) -> None:
    assert t_cdf(t, df) == pytest.approx(float(stdtr(df, t)), rel=1e-6, abs=1e-11)


# Student's own table has 12.71, 2.776, 2.228 and 1.984 at 1, 4, 10 and 100 degrees of freedom.
@pytest.mark.parametrize(("df", "t"), [(1, 12.71), (4, 2.776), (10, 2.228), (100, 1.984)])
def test_quantiles_of_the_printed_table(df: float, t: float) -> None:
    assert t_quantile(0.975, df) == pytest.approx(t, abs=5e-3)


@given(st.floats(1, 2000), st.floats(0.5001, 0.9999))
def test_the_one_undoes_the_other(df: float, p: float) -> None:
    t = t_quantile(p, df)
    assert t > 0
    assert t_cdf(t, df) == pytest.approx(p, rel=1e-9)
    assert t_quantile(1 - p, df) == pytest.approx(-t, rel=1e-6)
