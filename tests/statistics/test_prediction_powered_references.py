"""Corrected rates against the library of the papers' authors."""

from __future__ import annotations

import warnings
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.statistics.prediction_powered import corrected, rectify, rows_of, tuned
from apbjudge.statistics.sample import Sample

NAN = float("nan")


@pytest.fixture(scope="module")
def ppi() -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("ppi_py")


def judged_and_labels(seed: int, n: int, total: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 6, total) / 5
    judged = np.clip(truth + rng.choice([-0.4, -0.2, 0.0, 0.2], total), 0, 1)
    return judged, np.where(np.arange(total) < n, truth, NAN)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(5, 80), is_tuned=st.booleans())
def test_point_estimate_is_theirs(ppi: ModuleType, seed: int, n: int, is_tuned: bool) -> None:
    judged, labels = judged_and_labels(seed, n, 200)
    result = rectify(judged, labels, design="random", power_tuned=is_tuned)
    theirs = ppi.ppi_mean_pointestimate(
        labels[:n], judged[:n], judged[n:], lam=None if is_tuned else 1.0
    )
    assert result.rectified.value == pytest.approx(min(1.0, max(0.0, theirs.item())), abs=1e-12)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(5, 80), is_tuned=st.booleans())
def test_variance_is_theirs_but_for_n_minus_1(
    ppi: ModuleType, seed: int, n: int, is_tuned: bool
) -> None:
    judged, labels = judged_and_labels(seed, n, 200)
    rows = rows_of(judged, labels, Sample(), unequal=False, width=1.0)
    power = tuned(rows) if is_tuned else 1.0
    result = corrected(rows, power)
    low, high = ppi.ppi_mean_ci(
        labels[:n], judged[:n], judged[n:], alpha=0.05, lam=None if is_tuned else 1.0
    )
    theirs = (high.item() - low.item()) / 2 / 1.959963984540054
    assert np.sqrt(result.variance * (n - 1) / n) == pytest.approx(theirs, rel=1e-9)
    assert result.df == n - 1
