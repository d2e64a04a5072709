"""Agreement beyond chance: printed values, other libraries, laws, and empty tables."""

from __future__ import annotations

from collections.abc import Callable

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import cohen_kappa_score, f1_score, matthews_corrcoef
from statsmodels.stats.inter_rater import cohens_kappa

from apbjudge.statistics.agreement import (
    bennett_s,
    cohen_kappa,
    coincidences,
    coincidences_of_table,
    gwet_ac,
    krippendorff_alpha,
    linear_weights,
    observed_agreement,
    phi,
    quadratic_weights,
    specific_agreement,
)
from apbjudge.statistics.estimates import Array

Coefficient = Callable[[Array], Array]
GRADES = np.array([0, 0.2, 0.4, 0.6, 0.8, 1])

# Cohen 1968, Psychological Bulletin 70, tables 1 and 2: proportions of 200 diagnoses
COHEN = np.array([[88, 14, 18], [10, 40, 10], [2, 6, 12]])
# Feinstein & Cicchetti 1990, J. Clin. Epidemiol. 43, 543: equal agreement, unequal prevalence
BALANCED, SKEWED = np.array([[40, 9], [6, 45]]), np.array([[80, 10], [5, 5]])
# Gwet 2002, Statistical Methods for Inter-Rater Reliability Assessment 1: the kappa paradox
PARADOX = np.array([[118, 5], [2, 0]])
# Gwet 2014, Handbook of Inter-Rater Reliability (irrCAC's cont3x3abstractors)
ABSTRACTORS = np.array([[13, 0, 0], [0, 20, 7], [0, 4, 56]])
# Krippendorff 2011, Computing Krippendorff's Alpha-Reliability, section C: 4 observers, 12 units
OBSERVERS = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")


def codes_of(*raters: str) -> np.ndarray:
    """One digit an item, from 1; a dot where nothing was said."""
    return np.array([[-1 if said == "." else int(said) - 1 for said in row] for row in raters]).T


def test_cohen_s_own_example_unweighted_and_weighted() -> None:
    distances = np.array([[0, 1, 3], [1, 0, 6], [3, 6, 0]])
    assert observed_agreement(COHEN) == pytest.approx(0.70)
    assert cohen_kappa(COHEN) == pytest.approx(0.492, abs=5e-4)
    assert cohen_kappa(COHEN, 1 - distances / 6) == pytest.approx(0.348, abs=5e-4)


def test_feinstein_and_cicchetti_s_tables_agree_alike_and_have_unlike_kappas() -> None:
    tables = np.stack([BALANCED, SKEWED])
    assert observed_agreement(tables) == pytest.approx([0.85, 0.85])
    assert cohen_kappa(tables) == pytest.approx([0.70, 0.32], abs=5e-3)
    assert bennett_s(tables) == pytest.approx([0.70, 0.70])
    assert specific_agreement(SKEWED) == pytest.approx([160 / 175, 10 / 25])


def test_gwet_s_paradox() -> None:
    assert observed_agreement(PARADOX) == pytest.approx(0.944)
    assert cohen_kappa(PARADOX) == pytest.approx(-0.023, abs=5e-4)
    assert gwet_ac(PARADOX) == pytest.approx(0.941, abs=5e-4)


def test_gwet_s_abstractors() -> None:
    assert cohen_kappa(ABSTRACTORS) == pytest.approx(0.796, abs=5e-4)
    assert gwet_ac(ABSTRACTORS) == pytest.approx(0.849, abs=5e-4)
    assert bennett_s(ABSTRACTORS) == pytest.approx(0.835, abs=5e-4)
    alpha = krippendorff_alpha(coincidences_of_table(ABSTRACTORS))
    assert alpha == pytest.approx(0.797, abs=5e-4)


def test_ac2_by_hand() -> None:
    # weights 1, 3/4, 0: chance is (3 + 4 * 3/4) / 6 = 1 times sum p (1 - p), no item is two apart
    shares = np.array([13, 25.5, 61.5]) / 100
    chance = float(np.sum(shares * (1 - shares)))
    agreement = 0.89 + 0.11 * 0.75
    expected = (agreement - chance) / (1 - chance)
    assert gwet_ac(ABSTRACTORS, quadratic_weights(np.arange(3))) == pytest.approx(expected)


# Chicco & Jurman 2020, BMC Genomics 21:6, use cases A1 and A2
@pytest.mark.parametrize(
    ("table", "value"), [([[0, 9], [1, 90]], -0.03), ([[19, 6], [70, 5]], -0.24)]
)
def test_chicco_and_jurman_s_correlations(table: list[list[int]], value: float) -> None:
    assert phi(np.array(table)) == pytest.approx(value, abs=5e-3)


@pytest.mark.parametrize(
    ("metric", "value"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_krippendorff_s_four_observers(metric: str, value: float) -> None:
    pairs = coincidences(codes_of(*OBSERVERS), 5).sum(axis=0)
    assert pairs.sum() == 40  # the unit that only one observer coded is no pair
    assert krippendorff_alpha(pairs, metric=metric) == pytest.approx(value, abs=5e-4)


# The same paper, sections A and B: Meg and Owen, Ben and Gerry
@pytest.mark.parametrize(
    ("raters", "value"),
    [(("1211111121", "2221121111"), 0.095), (("112243335441", "212223335444"), 0.692)],
)
def test_krippendorff_s_two_observers(raters: tuple[str, str], value: float) -> None:
    pairs = coincidences(codes_of(*raters), 5).sum(axis=0)
    assert krippendorff_alpha(pairs) == pytest.approx(value, abs=5e-4)


@st.composite
def count_tables(draw: st.DrawFn, k: int | None = None) -> Array:
    k = k or draw(st.integers(2, 6))
    table = draw(hnp.arrays(np.float64, (k, k), elements=st.integers(0, 40).map(float)))
    assume(table.sum() > 0)
    return table


@st.composite
def ratings(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    k, n, r = draw(st.integers(2, 5)), draw(st.integers(1, 12)), draw(st.integers(2, 4))
    return draw(hnp.arrays(np.int64, (n, r), elements=st.integers(-1, k - 1))), k


def items_of(table: Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """First rating, second rating and how often, for the cells that occur."""
    first, second = np.nonzero(table)
    return first, second, table[first, second]


@settings(max_examples=25)
@given(count_tables(), st.sampled_from([None, "linear", "quadratic"]))
def test_kappa_agrees_with_scikit_learn_and_statsmodels(table: Array, kind: str | None) -> None:
    k = len(table)
    make = {None: None, "linear": linear_weights, "quadratic": quadratic_weights}[kind]
    value = float(cohen_kappa(table, make and make(np.arange(k))))
    assume(not np.isnan(value))
    first, second, counts = items_of(table)
    expected = cohen_kappa_score(
        first, second, labels=list(range(k)), weights=kind, sample_weight=counts
    )
    assert value == pytest.approx(expected, abs=1e-9)
    other = cohens_kappa(table, wt=kind, return_results=False)
    assert value == pytest.approx(other, abs=1e-9)


@settings(max_examples=25)
@given(count_tables(k=2))
def test_phi_agrees_with_scikit_learn(table: Array) -> None:
    value = float(phi(table))
    assume(not np.isnan(value))
    first, second, counts = items_of(table)
    expected = matthews_corrcoef(first, second, sample_weight=counts)
    assert value == pytest.approx(expected, abs=1e-9)


@given(count_tables())
def test_specific_agreement_is_scikit_learn_s_f1(table: Array) -> None:
    k = len(table)
    first, second, counts = items_of(table)
    expected = f1_score(
        second,
        first,
        labels=list(range(k)),
        average=None,
        sample_weight=counts,
        zero_division=np.nan,
    )
    np.testing.assert_allclose(specific_agreement(table), expected, atol=1e-12)


@given(ratings(), st.sampled_from(["nominal", "ordinal", "interval"]))
def test_alpha_agrees_with_krippendorff_where_ratings_are_missing(
    rated: tuple[np.ndarray, int], metric: str
) -> None:
    codes, k = rated
    value = float(krippendorff_alpha(coincidences(codes, k).sum(axis=0), metric=metric))
    assume(not np.isnan(value))
    expected = krippendorff.alpha(
        np.where(codes < 0, np.nan, codes).T,
        value_domain=list(range(k)),
        level_of_measurement=metric,
    )
    assert value == pytest.approx(expected, abs=1e-9)


def test_interval_alpha_takes_the_values_that_categories_stand_for() -> None:
    values = np.array([0.0, 1.0, 10.0])
    codes = codes_of("1233112", "1231212", "12.2113")
    pairs = coincidences(codes, 3).sum(axis=0)
    expected = krippendorff.alpha(
        np.where(codes < 0, np.nan, values[codes]).T, level_of_measurement="interval"
    )
    given_values = krippendorff_alpha(pairs, metric="interval", values=values)
    assert given_values == pytest.approx(expected, abs=1e-12)
    assert given_values != pytest.approx(float(krippendorff_alpha(pairs, metric="interval")))


def alpha_of(table: Array, metric: str = "nominal") -> Array:
    return krippendorff_alpha(coincidences_of_table(table), metric=metric)


def quadratic(coefficient: Callable[..., Array]) -> Coefficient:
    return lambda table: coefficient(table, quadratic_weights(np.arange(table.shape[-1])))


COEFFICIENTS: dict[str, Coefficient] = {
    "observed": observed_agreement,
    "kappa": cohen_kappa,
    "quadratic-kappa": quadratic(cohen_kappa),
    "s": bennett_s,
    "ac1": gwet_ac,
    "ac2": quadratic(gwet_ac),
    "alpha": alpha_of,
    "ordinal-alpha": lambda table: alpha_of(table, "ordinal"),
    "interval-alpha": lambda table: alpha_of(table, "interval"),
}
NOMINAL = ("observed", "kappa", "s", "ac1", "alpha")


@given(count_tables(), st.data())
def test_names_of_categories_do_not_matter(table: Array, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(table))))
    for name in NOMINAL:
        values = COEFFICIENTS[name](table[order][:, order]), COEFFICIENTS[name](table)
        np.testing.assert_allclose(*values, atol=1e-12, err_msg=name)


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


@given(count_tables(k=2))
def test_with_two_categories_the_coefficients_meet(table: Array) -> None:
    agreement = float(observed_agreement(table))
    assert bennett_s(table) == pytest.approx(2 * agreement - 1)
    np.testing.assert_allclose(alpha_of(table, "ordinal"), alpha_of(table), atol=1e-12)
    np.testing.assert_allclose(alpha_of(table, "interval"), alpha_of(table), atol=1e-12)
    if not np.isnan(phi(table)):
        assert abs(float(cohen_kappa(table))) <= abs(float(phi(table))) + 1e-12
        assert phi(table[::-1]) == pytest.approx(-float(phi(table)))
    balanced = table + table[::-1, ::-1]
    assert phi(balanced) == pytest.approx(float(cohen_kappa(balanced)), abs=1e-12)
    assert gwet_ac(balanced) == pytest.approx(float(cohen_kappa(balanced)), abs=1e-12)


@given(count_tables())
def test_a_category_that_nobody_uses_changes_s_and_ac1_only(table: Array) -> None:
    wider = np.pad(table, (0, 1))
    for name in ("observed", "kappa", "alpha", "ordinal-alpha", "interval-alpha"):
        np.testing.assert_allclose(COEFFICIENTS[name](wider), COEFFICIENTS[name](table), atol=1e-9)
    assert float(bennett_s(wider)) >= float(bennett_s(table)) - 1e-12
    np.testing.assert_array_equal(specific_agreement(wider)[-1], np.nan)


def test_weights_of_the_six_grades() -> None:
    np.testing.assert_allclose(linear_weights(GRADES)[0], [1, 0.8, 0.6, 0.4, 0.2, 0])
    np.testing.assert_allclose(quadratic_weights(GRADES)[0], 1 - GRADES**2)
    np.testing.assert_allclose(quadratic_weights(GRADES), quadratic_weights(5 * GRADES + 1))
    np.testing.assert_allclose(quadratic_weights(np.arange(2)), np.eye(2))


@pytest.mark.parametrize("k", [2, 6])
def test_all_in_one_category(k: int) -> None:
    table = np.zeros((k, k))
    table[1, 1] = 7
    for name in ("kappa", "quadratic-kappa", "alpha", "ordinal-alpha", "interval-alpha"):
        assert np.isnan(COEFFICIENTS[name](table)), name
    for name in ("observed", "s", "ac1", "ac2"):
        assert COEFFICIENTS[name](table) == 1, name
    assert specific_agreement(table)[1] == 1
    assert np.isnan(specific_agreement(table)[0])


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_no_items_have_no_agreement(name: str) -> None:
    assert np.isnan(COEFFICIENTS[name](np.zeros((3, 3))))
    assert COEFFICIENTS[name](np.zeros((0, 3, 3))).shape == (0,)


@pytest.mark.parametrize(("n", "r"), [(0, 2), (3, 0), (3, 1), (3, 2)])
def test_ratings_without_a_pair_have_no_alpha(n: int, r: int) -> None:
    codes = np.full((n, r), -1)
    codes[:, :1] = 0
    assert np.isnan(krippendorff_alpha(coincidences(codes, 2).sum(axis=0)))


def test_weights_that_add_up_to_no_pair_have_no_alpha() -> None:
    assert np.isnan(krippendorff_alpha(np.array([[0, 0.4], [0.4, 0]])))


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (1, 1), (5, 3, 2)])
def test_tables_of_another_shape_are_named(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"tables: expected \(\.\.\., K, K\)"):
        cohen_kappa(np.ones(shape))


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(ValueError, match=r"phi: .*got \(3, 3\)"):
        phi(np.ones((3, 3)))
    with pytest.raises(ValueError, match=r"weights: expected \(3, 3\), got \(2, 2\)"):
        gwet_ac(np.ones((3, 3)), np.eye(2))
    with pytest.raises(ValueError, match=r"coincidences: .*got \(2, 3\)"):
        krippendorff_alpha(np.ones((2, 3)))
    with pytest.raises(ValueError, match="values: expected 3 numbers"):
        krippendorff_alpha(np.ones((3, 3)), metric="interval", values=np.arange(2.0))
    with pytest.raises(ValueError, match="for the metric 'interval' only"):
        krippendorff_alpha(np.ones((3, 3)), metric="ordinal", values=np.arange(3.0))
    with pytest.raises(ValueError, match=r"metric: .*got 'ratio'"):
        krippendorff_alpha(np.ones((3, 3)), metric="ratio")


@pytest.mark.parametrize("values", [[], [1], [2, 2], [0, np.inf], [0, np.nan], [[0, 1]]])
def test_values_that_do_not_differ_make_no_weights(values: list[float]) -> None:
    with pytest.raises(ValueError, match="values: expected a row of finite numbers that differ"):
        quadratic_weights(np.array(values))


@pytest.mark.parametrize(
    "codes", [np.zeros(3, int), np.zeros((2, 2)), np.array([[0, 2]]), np.array([[-2, 0]])]
)
def test_codes_out_of_range_are_named(codes: np.ndarray) -> None:
    with pytest.raises(ValueError, match="codes: expected"):
        coincidences(codes, 2)
