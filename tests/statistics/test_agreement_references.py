"""Agreement coefficients against Gwet's own package, where it is installed."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from apbjudge.statistics.agreement import (
    cohen_kappa,
    coincidences_of_table,
    gwet_ac,
    krippendorff_alpha,
    quadratic_weights,
)

table_module = pytest.importorskip("irrCAC.table")

RNG = np.random.default_rng(4)
TABLES = [RNG.integers(0, 30, (k, k)) for k in (2, 3, 4, 6)] + [
    np.diag([3, 0, 90]) + np.eye(3, k=1)
]
WEIGHTS = {"identity": None, "quadratic": quadratic_weights}
PAIRS = [("nominal", "identity"), ("interval", "quadratic")]


def reference(table: np.ndarray, weights: str, name: str) -> float:
    coefficients = table_module.CAC(pd.DataFrame(table.astype(float)), weights=weights, digits=10)
    return float(getattr(coefficients, name)()["est"]["coefficient_value"])


@pytest.mark.parametrize(("table", "weights"), list(product(TABLES, WEIGHTS)))
def test_kappa_and_ac_with_any_weights(table: np.ndarray, weights: str) -> None:
    make = WEIGHTS[weights]
    used = None if make is None else make(np.arange(len(table)))
    assert gwet_ac(table, used) == pytest.approx(reference(table, weights, "gwet"), abs=1e-8)
    assert cohen_kappa(table, used) == pytest.approx(reference(table, weights, "cohen"), abs=1e-8)


@pytest.mark.parametrize(("table", "pair"), list(product(TABLES, PAIRS)))
def test_alpha(table: np.ndarray, pair: tuple[str, str]) -> None:
    metric, weights = pair
    value = krippendorff_alpha(coincidences_of_table(table), metric=metric)
    assert value == pytest.approx(reference(table, weights, "krippendorff"), abs=1e-8)
