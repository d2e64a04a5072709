"""The best set: it holds the best row as often as it says, and leaves out what is clearly worse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.statistics.best import Contender, best_set
from apbjudge.statistics.differences import paired_test
from apbjudge.statistics.sample import Sample

Better = Literal["higher", "lower"]
Draw = Callable[[np.random.Generator], list[Contender]]
REPETITIONS = 400


def row(values: Any, items: Any = None, cases: Any = None) -> Contender:
    """A row of items that are cases of their own, unless said otherwise."""
    result = np.asarray(values, dtype=float)
    at = np.arange(len(result)) if items is None else np.asarray(items)
    return Contender(values=result, items=at, cases=at if cases is None else np.asarray(cases))


def share(k: int, n: int = 100, first: int = 0) -> Contender:
    """k of n items are right; items from the first on."""
    return row(np.arange(n) < k, np.arange(first, first + n))


# how often the best row is kept ------------------------------------------------------------------

MEANS = (0.7, 0.7, 0.65, 0.5)
N, PER_CASE = 60, 2


def answers(rng: np.random.Generator, mean: float, ease: Any) -> Any:
    """0 or 1 an item, more often 1 in easy cases."""
    return (rng.random(N) < np.clip(mean + ease, 0, 1)).astype(float)


def paired(rng: np.random.Generator) -> list[Contender]:
    cases = np.arange(N) // PER_CASE
    ease = rng.uniform(-0.3, 0.3, N // PER_CASE)[cases]
    return [row(answers(rng, mean, ease), cases=cases) for mean in MEANS]


def of_other_items(rng: np.random.Generator) -> list[Contender]:
    cases = np.arange(N) // PER_CASE
    ease = rng.uniform(-0.3, 0.3, N // PER_CASE)[cases]
    return [
        row(answers(rng, mean, ease), np.arange(N) + i * N, cases) for i, mean in enumerate(MEANS)
    ]


def partly_missing(rng: np.random.Generator) -> list[Contender]:
    result: list[Contender] = []
    for whole in paired(rng):
        kept = rng.random(N) < 0.9
        result.append(row(whole.values[kept], whole.items[kept], whole.cases[kept]))
    return result


def costs(rng: np.random.Generator) -> list[Contender]:
    ease = rng.gamma(2.0, 4.0, N)
    return [row(ease + rng.gamma(3.0, 3.0 - mean, N)) for mean in MEANS]


def others_costs(rng: np.random.Generator) -> list[Contender]:
    return [
        row(rng.gamma(2.0, 8.0 - mean, N), np.arange(N) + i * N) for i, mean in enumerate(MEANS)
    ]


def grades(rng: np.random.Generator) -> list[Contender]:
    """Two equal means: one row is a little wrong often, the other seldom, but then all wrong."""
    return [row(1 - 0.2 * (rng.random(20) < 0.5)), row(rng.random(20) < 0.9)]


@pytest.mark.parametrize(
    ("draw", "better", "bounds"),
    [
        (paired, "higher", (0.0, 1.0)),
        (grades, "higher", (0.0, 1.0)),
        (of_other_items, "higher", (0.0, 1.0)),
        (partly_missing, "higher", (0.0, 1.0)),
        (costs, "lower", None),
        (others_costs, "lower", None),
    ],
)
def test_a_truly_best_row_is_kept_as_often_as_the_level_says(
    draw: Draw, better: Better, bounds: tuple[float, float] | None
) -> None:
    """Three standard errors are allowed; the first two rows are equally good."""
    rng = np.random.default_rng(20_260_101)
    kept = [best_set(draw(rng), better=better, bounds=bounds)[:2] for _ in range(REPETITIONS)]
    allowed = 0.95 - 3 * (0.05 * 0.95 / REPETITIONS) ** 0.5
    assert np.mean(kept, axis=0).min() >= allowed


def test_without_the_correction_for_many_rows_the_best_would_be_lost_too_often() -> None:
    """Twelve equal rows, each pair tested at the full level: the guard of the test above."""
    rng = np.random.default_rng(1)
    lost = corrected = 0
    for _ in range(100):
        rows = [row(rng.random(60) < 0.5) for _ in range(12)]
        corrected += not best_set(rows, better="higher")[0]
        lost += any(
            (paired_test(other.values - rows[0].values, Sample(), level=0.9).estimate.low or 0) > 0
            for other in rows[1:]
        )
    assert lost > 10
    assert corrected <= 5


# what is left out and what is not ----------------------------------------------------------------


def test_a_clearly_worse_row_is_left_out() -> None:
    assert best_set([share(90), share(88), share(50)], better="higher") == [True, True, False]
    assert best_set([share(90), share(88), share(50)], better="lower") == [False, False, True]


def test_rows_of_other_items_are_told_apart_too() -> None:
    rows = [share(90), share(50, first=1000)]
    assert best_set(rows, better="higher") == [True, False]


def test_pairs_tell_what_unpaired_rows_would_not() -> None:
    """A row that is right wherever the other one is, and ten times more."""
    rows = [share(60), share(50)]
    assert best_set(rows, better="higher") == [True, False]
    assert best_set([share(60), share(50, first=1000)], better="higher") == [True, True]


def test_cases_count_and_not_rows() -> None:
    """Ten cases of ten items each that all come out alike show less than a hundred items."""
    cases = np.repeat(np.arange(10), 10)
    better, worse = np.repeat([1, 1, 1, 1, 1, 1, 1, 0, 0, 0], 10), np.repeat([1] * 4 + [0] * 6, 10)
    assert best_set([row(better), row(worse)], better="higher") == [True, False]
    result = best_set([row(better, cases=cases), row(worse, cases=cases)], better="higher")
    assert result == [True, True]


def test_no_row_and_one_row_have_nothing_to_be_compared_with() -> None:
    assert best_set([], better="higher") == []
    assert best_set([share(90)], better="higher") == [False]
    assert best_set([share(90), row([])], better="higher") == [False, False]


def test_a_row_without_values_is_never_best() -> None:
    assert best_set([share(90), row([]), share(20)], better="higher") == [True, False, False]


def test_equal_rows_are_all_best() -> None:
    assert best_set([share(90)] * 5, better="higher") == [True] * 5
    assert best_set([row([3.0] * 9)] * 3, better="lower", bounds=None) == [True] * 3


@pytest.mark.parametrize("n", [1, 2])
def test_with_one_or_two_cases_nothing_is_shown(n: int) -> None:
    cases = np.arange(20) % n
    rows = [row(np.ones(20), cases=cases), row(np.zeros(20), cases=cases)]
    assert best_set(rows, better="higher") == [True, True]
    apart = [row(np.ones(20), cases=cases), row(np.zeros(20), np.arange(50, 70), cases + 10)]
    assert best_set(apart, better="higher") == [True, True]


def test_costs_are_compared_on_the_items_they_are_of() -> None:
    rng = np.random.default_rng(5)
    base = rng.gamma(2.0, 5.0, 80)
    dearer = row(base + 1 + rng.random(80))
    assert best_set([row(base), dearer], better="lower", bounds=None) == [True, False]
    other = row(base + 1 + rng.random(80), np.arange(80) + 500)
    assert best_set([row(base), other], better="lower", bounds=None) == [True, True]
    far = row(base + 30, np.arange(80) + 500)
    assert best_set([row(base), far], better="lower", bounds=None) == [True, False]


def test_an_item_that_stands_twice_is_two_rows_of_one_case() -> None:
    items = np.repeat(np.arange(100), 2)
    rows = [row(items < k, items, items) for k in (90, 50)]
    assert best_set(rows, better="higher") == [True, False]


def test_rows_of_other_items_need_ten_cases_to_be_told_apart() -> None:
    for n, expected in ((9, True), (10, False)):
        rows = [row(np.ones(n)), row(np.zeros(n), np.arange(n) + 500)]
        assert best_set(rows, better="higher") == [True, expected]


@pytest.mark.parametrize("value", [0.1, 0.7, 3.3])
def test_equal_costs_stay_equal_whatever_their_sums_are_rounded_to(value: float) -> None:
    rows = [row(np.full(30, value)), row(np.full(41, value), np.arange(41) + 500)]
    assert best_set(rows, better="lower", bounds=None) == [True, True]


def test_values_out_of_bounds_are_refused() -> None:
    with pytest.raises(ValueError, match="differences"):
        best_set([share(90), row(np.full(100, -3.0))], better="higher")


# laws --------------------------------------------------------------------------------------------


@st.composite
def contenders(draw: st.DrawFn) -> list[Contender]:
    """Two to six rows of up to 60 items, some missing."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(3, 60))
    means = draw(st.lists(st.sampled_from([0.1, 0.5, 0.6, 0.95]), min_size=2, max_size=6))
    missing = draw(st.sampled_from([0.0, 0.2]))
    result: list[Contender] = []
    for mean in means:
        kept = np.flatnonzero(rng.random(n) >= missing)
        result.append(row(rng.random(len(kept)) < mean, kept, kept // 2))
    return result


@given(rows=contenders(), seed=st.integers(0, 2**32))
@settings(max_examples=30)
def test_the_order_of_rows_and_items_leaves_no_trace(rows: Sequence[Contender], seed: int) -> None:
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(rows)).tolist()
    mixed: list[Contender] = []
    for i in order:
        at = rng.permutation(len(rows[i].values))
        mixed.append(row(rows[i].values[at], rows[i].items[at] + 7, rows[i].cases[at] + 9))
    expected = best_set(rows, better="higher")
    assert best_set(mixed, better="higher") == [expected[i] for i in order]


@given(rows=contenders())
@settings(max_examples=30)
def test_right_is_to_higher_what_wrong_is_to_lower(rows: Sequence[Contender]) -> None:
    wrong = [row(1 - r.values, r.items, r.cases) for r in rows]
    assert best_set(rows, better="higher") == best_set(wrong, better="lower")


@given(rows=contenders())
@settings(max_examples=30)
def test_the_row_with_the_best_mean_is_in_and_a_surer_set_holds_a_less_sure_one(
    rows: Sequence[Contender],
) -> None:
    sure, less = (best_set(rows, better="higher", level=level) for level in (0.99, 0.8))
    assert all(one or not other for one, other in zip(sure, less, strict=True))
    held = [r.values.mean() if len(r.values) else -1.0 for r in rows]
    if sum(len(r.values) > 0 for r in rows) > 1:
        assert less[int(np.argmax(held))]
