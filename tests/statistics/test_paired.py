"""Two runs on the same items: printed examples, plain formulas, scipy, laws, and no data."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats
from sklearn.metrics import f1_score, precision_score

from apbjudge.statistics.differences import mcnemar
from apbjudge.statistics.estimates import nothing
from apbjudge.statistics.measures import PAPER, calibrate
from apbjudge.statistics.metric import neutral
from apbjudge.statistics.paired import (
    Difference,
    compare_reliability,
    compare_verdicts,
    flips,
    with_families,
)
from apbjudge.statistics.ratings import Ratings
from apbjudge.statistics.sample import Sample
from tests.statistics.builders import ratings


def drawn(rng: np.random.Generator, n: int) -> Ratings:
    """Random ratings that say something of everything."""
    return ratings(rng.integers(0, 2, n), rng.integers(0, 6, n), rng.integers(0, 64, n), 63)


def by_name(result: Sequence[Difference]) -> dict[str, Difference]:
    return {difference.name: difference for difference in result}


def value(difference: Difference) -> float:
    assert difference.difference.value is not None
    return difference.difference.value


# Flips -------------------------------------------------------------------------------------------


VERDICTS = st.lists(st.tuples(st.integers(-1, 1), st.integers(-1, 1)), min_size=1, max_size=60)


@given(VERDICTS)
def test_flips_count_what_both_judged(pairs: list[tuple[int, int]]) -> None:
    first, second = (ratings(column) for column in zip(*pairs, strict=True))
    result = flips(first, second, Sample())
    cells = [pairs.count((1, 1)), pairs.count((1, 0)), pairs.count((0, 1)), pairs.count((0, 0))]
    assert [result.both, result.first_only, result.second_only, result.neither] == cells
    assert result.test == mcnemar(cells[1], cells[2])
    differences = compare_verdicts(first, second)
    assert bool(differences) == (sum(cells) > 0)
    if differences:
        assert value(differences[0]) == pytest.approx((cells[1] - cells[2]) / sum(cells))
        assert differences[0].difference.n_items == sum(cells)


# Verdicts ----------------------------------------------------------------------------------------


def test_items_unscored_on_either_side_count_nowhere() -> None:
    rng, n = np.random.default_rng(1), 30
    nothing_said = ratings([-1] * n, known=0)
    runs, human = [drawn(rng, n), drawn(rng, n)], drawn(rng, n)
    gaps = [rng.random(n) < 0.3, rng.random(n) < 0.3]
    rows = np.flatnonzero(~(gaps[0] | gaps[1]))
    columns = ("correct", "grade", "flags", "known")
    with_gaps = [
        replace(
            run,
            **{of: np.where(gap, getattr(nothing_said, of), getattr(run, of)) for of in columns},
        )
        for run, gap in zip(runs, gaps, strict=True)
    ]
    kept = [run.take(rows) for run in runs]
    assert compare_verdicts(*with_gaps) == compare_verdicts(*kept)
    result = compare_reliability(*with_gaps, human)
    assert result == compare_reliability(*kept, human.take(rows))
    assert by_name(result)["F1"].difference.n_items == len(rows)


def test_a_code_counts_where_both_said_something_of_it() -> None:
    first = ratings([0, 0, 0], flags=[1, 1, 0], known=1)
    second = replace(first, known=np.array([1, 0, 1], dtype=np.uint8), flags=first.flags * 0)
    result = by_name(compare_verdicts(first, second))
    assert list(result) == ["CR", "E1"]
    assert result["E1"].difference.n_items == 2
    assert value(result["E1"]) == 0.5


# Against labels ----------------------------------------------------------------------------------


def test_reliability_is_that_of_calibrate() -> None:
    rng = np.random.default_rng(2)
    first, second, human = drawn(rng, 120), drawn(rng, 120), drawn(rng, 120)
    result = by_name(compare_reliability(first, second, human))
    assert tuple(result) == tuple(kind.name for kind in PAPER)
    sides = calibrate(first, human).measures, calibrate(second, human).measures
    for name, difference in result.items():
        one, other = (of[name].value or 0.0 for of in sides)
        assert (difference.first.value, difference.second.value) == pytest.approx((one, other))
        assert value(difference) == pytest.approx(one - other)
        assert difference.detectable is not None


def noisy(rng: np.random.Generator, human: np.ndarray, errs: float) -> np.ndarray:
    return np.where(rng.random(len(human)) < errs, 1 - human, human)


@pytest.mark.parametrize(("name", "score"), [("F1", f1_score), ("precision", precision_score)])
def test_ratios_have_the_error_of_a_leave_one_out_loop(
    name: str, score: Callable[..., float]
) -> None:
    rng, n = np.random.default_rng(3), 60
    human = (rng.random(n) < 0.6).astype(int)
    first, second = noisy(rng, human, 0.1), noisy(rng, human, 0.25)
    result = by_name(compare_reliability(ratings(first), ratings(second), ratings(human)))[name]
    # half an item more in each cell in which the judges differ
    truth = np.append(human, [0, 1, 0, 1])
    a, b = np.append(first, [0, 0, 1, 1]), np.append(second, [1, 1, 0, 0])
    weights = np.append(np.ones(n), np.full(4, 0.5))

    def difference(weights: np.ndarray) -> float:
        one, other = (score(truth, x, sample_weight=weights) for x in (a, b))
        return one - other

    centre = difference(weights)
    left = np.array([difference(weights * (np.arange(n + 4) != i)) for i in range(n + 4)])
    error = np.sqrt((n + 3) / (n + 4) * ((left - left.mean()) ** 2).sum())
    quantile = (centre - (result.difference.low or 0)) / error
    # what makes up the variance is uneven, so that its degrees of freedom are n + 3 at most
    df = float(optimize.brentq(lambda df: stats.t.ppf(0.975, df) - quantile, 5, n + 4))
    assert df < n + 3 + 1e-6
    assert value(result) == pytest.approx(difference(weights * (np.arange(n + 4) < n)))
    assert result.p_value == pytest.approx(2 * stats.t.sf(centre / error, df), rel=1e-5)
    assert result.detectable == pytest.approx((1.959964 + 0.841621) * error, rel=1e-5)


@pytest.mark.slow
def test_tests_of_clustered_items_keep_their_size_where_plain_ones_do_not() -> None:
    """Two judges that err on whole cases, neither more often."""
    rng, n_runs, cases = np.random.default_rng(9), 200, np.repeat(np.arange(30), 5)
    false = {"CR": 0, "agreement": 0, "F1": 0, "agreement, plain": 0}
    for _ in range(n_runs):
        truth = rng.integers(0, 2, 30)[cases]
        human, hard = ratings(truth), rng.beta(0.3, 0.9, (2, 30))[:, cases]
        judges = [ratings(np.where(rng.random(150) < of, 1 - truth, truth)) for of in hard]
        sample = Sample(clusters=cases)
        result = by_name(compare_verdicts(*judges, sample)[:1])
        result |= by_name(compare_reliability(*judges, human, sample))
        plain = by_name(compare_reliability(*judges, human))["agreement"]
        for name, one in {**result, "agreement, plain": plain}.items():
            if name in false:
                false[name] += (one.p_value or 0) < 0.05
    assert false.pop("agreement, plain") > 0.1 * n_runs
    for name, n in false.items():
        assert 0.01 <= n / n_runs <= 0.08, name


# Families ----------------------------------------------------------------------------------------


def with_p(name: str, p_value: float | None) -> Difference:
    sides = dict.fromkeys(("first", "second", "difference"), nothing())
    return Difference(kind=neutral(name), **sides, p_value=p_value, detectable=None)


def test_holm_over_the_primary_and_bh_over_the_rest() -> None:
    p_values = {"a": 0.03, "x": 0.03, "b": 0.04, "untested": None, "y": 0.04}
    differences = [with_p(name, p) for name, p in p_values.items()]
    result = with_families(differences, ["b", "a"])
    assert [(d.name, d.family) for d in result if d.family == "primary"] == [
        ("a", "primary"),
        ("b", "primary"),
    ]
    adjusted = {d.name: d.adjusted for d in result}
    assert adjusted == {"a": 0.06, "x": 0.04, "b": 0.06, "untested": None, "y": 0.04}


def test_an_unknown_primary_is_refused() -> None:
    with pytest.raises(ValueError, match=r"primary: expected some of a, b, got 'CR'"):
        with_families([with_p("a", 0.1), with_p("b", None)], ["a", "CR"])


# Little or no data -------------------------------------------------------------------------------


@pytest.mark.parametrize("codes", [[], [-1, -1, -1], [1], [0, 0, 0], [0, 1]])
def test_degenerate_runs_give_values_or_reasons(codes: list[int]) -> None:
    run = ratings(codes, [5 * code if code >= 0 else -1 for code in codes], known=63)
    for human in (run, ratings([1] * len(codes)), ratings([-1] * len(codes))):
        result = compare_verdicts(run, run) + compare_reliability(run, run, human)
        assert bool(result) == any(code >= 0 for code in codes)
        for difference in result:
            assert difference.difference.value in {0, None}
            assert difference.difference.note or difference.p_value == pytest.approx(1)
        json.dumps([asdict(d) for d in result], allow_nan=False)
