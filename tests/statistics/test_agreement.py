"""Agreement beyond chance: printed values, other libraries, laws, and empty tables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import cohen_kappa_score, matthews_corrcoef

from apbjudge.statistics.agreement import (
    cohen_kappa,
    coincidences,
    coincidences_of_table,
    gwet_ac,
    krippendorff_alpha,
    phi,
    quadratic_weights,
)
from apbjudge.statistics.estimates import Array

Coefficient = Callable[[Array], Array]

# Cohen 1968, Psychological Bulletin 70, tables 1 and 2: proportions of 200 diagnoses
COHEN = np.array([[88, 14, 18], [10, 40, 10], [2, 6, 12]])
# Gwet 2014, Handbook of Inter-Rater Reliability (irrCAC's cont3x3abstractors)
ABSTRACTORS = np.array([[13, 0, 0], [0, 20, 7], [0, 4, 56]])
# Krippendorff 2011, Computing Krippendorff's Alpha-Reliability, section C: 4 observers, 12 units
OBSERVERS = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")


def test_cohen_s_and_gwet_s_own_examples() -> None:
    distances = np.array([[0, 1, 3], [1, 0, 6], [3, 6, 0]])
    assert cohen_kappa(COHEN) == pytest.approx(0.492, abs=5e-4)
    assert cohen_kappa(COHEN, 1 - distances / 6) == pytest.approx(0.348, abs=5e-4)
    assert gwet_ac(ABSTRACTORS) == pytest.approx(0.849, abs=5e-4)


def test_ac2_by_hand() -> None:
    # weights 1, 3/4, 0: chance is (3 + 4 * 3/4) / 6 = 1 times sum p (1 - p), no item is two apart
    shares = np.array([13, 25.5, 61.5]) / 100
    chance = float(np.sum(shares * (1 - shares)))
    agreement = 0.89 + 0.11 * 0.75
    expected = (agreement - chance) / (1 - chance)
    assert gwet_ac(ABSTRACTORS, quadratic_weights(np.arange(3))) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("metric", "value"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_krippendorff_s_four_observers(metric: str, value: float) -> None:
    codes = [[-1 if said == "." else int(said) - 1 for said in row] for row in OBSERVERS]
    pairs = coincidences(np.array(codes).T, 5).sum(axis=0)
    assert pairs.sum() == 40  # the unit that only one observer coded is no pair
    assert krippendorff_alpha(pairs, metric=metric) == pytest.approx(value, abs=5e-4)


@st.composite
def count_tables(draw: st.DrawFn, k: int | None = None) -> Array:
    k = k or draw(st.integers(2, 6))
    table = draw(hnp.arrays(np.float64, (k, k), elements=st.integers(0, 40).map(float)))
    assume(table.sum() > 0)
    return table


@settings(max_examples=25)
@given(count_tables())
def test_kappa_and_phi_agree_with_scikit_learn(table: Array) -> None:
    first, second = np.nonzero(table)
    counts, labels = table[first, second], list(range(len(table)))
    quadratic = quadratic_weights(0.2 * np.arange(len(table)))
    for weights, kind in ((None, None), (quadratic, "quadratic")):
        value = float(cohen_kappa(table, weights))
        assume(not np.isnan(value))
        expected = cohen_kappa_score(
            first, second, labels=labels, weights=kind, sample_weight=counts
        )
        assert value == pytest.approx(expected, abs=1e-9)
    if len(table) == 2 and not np.isnan(phi(table)):
        expected = matthews_corrcoef(first, second, sample_weight=counts)
        assert float(phi(table)) == pytest.approx(expected, abs=1e-9)


def alpha_of(table: Array, metric: str = "nominal") -> Array:
    return krippendorff_alpha(coincidences_of_table(table), metric=metric)


def quadratic(coefficient: Callable[..., Array]) -> Coefficient:
    return lambda table: coefficient(table, quadratic_weights(np.arange(table.shape[-1])))


COEFFICIENTS: dict[str, Coefficient] = {
    "kappa": cohen_kappa,
    "quadratic-kappa": quadratic(cohen_kappa),
    "ac1": gwet_ac,
    "ac2": quadratic(gwet_ac),
    "alpha": alpha_of,
    "ordinal-alpha": lambda table: alpha_of(table, "ordinal"),
}


@given(count_tables(), st.booleans())
def test_1_means_full_agreement_and_nothing_else_does(table: Array, agreed: bool) -> None:
    table = table * np.eye(len(table)) if agreed else table
    for name, coefficient in COEFFICIENTS.items():
        value = float(coefficient(table))
        if not np.isnan(value):
            assert value <= 1, name
            assert (value == 1) == (np.trace(table) == table.sum()), name


@given(count_tables(k=3), count_tables(k=3))
def test_a_stack_of_tables_gives_the_value_of_each(table: Array, more: Array) -> None:
    parts = [table, more, np.zeros((3, 3)), more.T, table, table]
    for name, coefficient in COEFFICIENTS.items():
        values = coefficient(np.stack(parts).reshape(2, 3, 3, 3))
        assert values.shape == (2, 3)
        one_by_one = [float(coefficient(part)) for part in parts]
        np.testing.assert_allclose(values.ravel(), one_by_one, atol=1e-12, err_msg=name)


def test_tables_of_one_category_or_of_no_items() -> None:
    for name, coefficient in COEFFICIENTS.items():
        value = float(coefficient(np.diag([0, 7, 0])))
        assert (value == 1) if name in {"ac1", "ac2"} else np.isnan(value), name
        assert np.isnan(coefficient(np.zeros((3, 3)))), name
        assert coefficient(np.zeros((0, 3, 3))).shape == (0,), name
    one_rating_each = coincidences(np.array([[0, -1], [0, -1]]), 2).sum(axis=0)
    for pairs in (one_rating_each, np.array([[0, 0.4], [0.4, 0]])):
        assert np.isnan(krippendorff_alpha(pairs))


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(ValueError, match=r"tables: expected \(\.\.\., K, K\)"):
        cohen_kappa(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"phi: .*got \(3, 3\)"):
        phi(np.ones((3, 3)))
    with pytest.raises(ValueError, match=r"weights: expected \(3, 3\), got \(2, 2\)"):
        gwet_ac(np.ones((3, 3)), np.eye(2))
    with pytest.raises(ValueError, match=r"metric: .*got 'ratio'"):
        krippendorff_alpha(np.ones((3, 3)), metric="ratio")
    with pytest.raises(ValueError, match="values: expected a row of finite numbers"):
        quadratic_weights(np.array([2, 2]))
    for codes in (np.zeros((2, 2)), np.array([[0, 2]]), np.array([[-2, 0]])):
        with pytest.raises(ValueError, match="codes: expected"):
            coincidences(codes, 2)


@pytest.mark.parametrize("values", [[], [1], [2, 2], [0, np.inf], [0, np.nan], [[0, 1]]])
def test_values_that_do_not_differ_make_no_weights(values: list[float]) -> None:
    with pytest.raises(ValueError, match="values: expected a row of finite numbers that differ"):
        quadratic_weights(np.array(values))
