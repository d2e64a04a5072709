"""The best set: it holds the best row as often as it says, and leaves out what is clearly worse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from apbjudge.statistics.best import Place, RowValues, best_set, places

Draw = Callable[[np.random.Generator], list[RowValues]]
REPETITIONS = 400


def row(values: Any, items: Any = None, cases: Any = None) -> RowValues:
    """A row of items that are cases of their own, unless said otherwise."""
    result = np.asarray(values, dtype=float)
    at = np.arange(len(result)) if items is None else np.asarray(items)
    return RowValues(values=result, items=at, cases=at if cases is None else np.asarray(cases))


def share(k: int, n: int = 100, first: int = 0) -> RowValues:
    """k of n items are right; items from the first on."""
    return row(np.arange(n) < k, np.arange(first, first + n))


# how often the best row is kept ------------------------------------------------------------------

MEANS = (0.7, 0.7, 0.65, 0.5)
N, PER_CASE = 60, 2


def answers(rng: np.random.Generator, *, apart: int) -> list[RowValues]:
    """0 or 1 an item, more often 1 in easy cases; each row has items of its own if apart."""
    cases = np.arange(N) // PER_CASE
    ease = rng.uniform(-0.3, 0.3, N // PER_CASE)[cases]
    rates = [np.clip(mean + ease, 0, 1) for mean in MEANS]
    return [row(rng.random(N) < of, np.arange(N) + i * apart, cases) for i, of in enumerate(rates)]


def grades(rng: np.random.Generator) -> list[RowValues]:
    """Two equal means: one row is a little wrong often, the other seldom, but then all wrong."""
    return [row(1 - 0.2 * (rng.random(20) < 0.5)), row(rng.random(20) < 0.9)]


@pytest.mark.parametrize("draw", [partial(answers, apart=0), grades, partial(answers, apart=N)])
@pytest.mark.slow
def test_a_truly_best_row_is_kept_as_often_as_the_level_says(draw: Draw) -> None:
    """Three standard errors are allowed; the first two rows are equally good."""
    rng = np.random.default_rng(20_260_101)
    kept = [best_set(draw(rng), better="higher")[:2] for _ in range(REPETITIONS)]
    allowed = 0.95 - 3 * (0.05 * 0.95 / REPETITIONS) ** 0.5
    assert np.mean(kept, axis=0).min() >= allowed


# what is left out and what is not ----------------------------------------------------------------


def in_cases(values: Sequence[int], per_case: int = 10) -> RowValues:
    """A value a case, of several items each that all come out alike."""
    whole = np.repeat(values, per_case)
    return row(whole, cases=np.repeat(np.arange(len(values)), per_case))


BASE = np.random.default_rng(5).gamma(2.0, 5.0, 80)
DEARER = BASE + 1 + np.random.default_rng(6).random(80)
ELSEWHERE = np.arange(80) + 500
SETS: dict[str, tuple[list[RowValues], list[bool]]] = {
    "a clearly worse row is out": ([share(90), share(88), share(50)], [True, True, False]),
    "pairs tell": ([share(60), share(50)], [True, False]),
    "what rows of other items do not": ([share(60), share(50, first=1000)], [True, True]),
    "nor do 5 of 5 among three rows": ([share(55), share(50), share(55)], [True, True, True]),
    "but 6 of 6 do": ([share(56), share(50), share(56)], [True, False, True]),
    "cases count": ([in_cases([1] * 7 + [0] * 3), in_cases([1] * 4 + [0] * 6)], [True, True]),
    "and not items": (
        [in_cases([1] * 70 + [0] * 30, 1), in_cases([1] * 40 + [0] * 60, 1)],
        [True, False],
    ),
    "nine other cases": ([row(np.ones(9)), row(np.zeros(9), np.arange(9) + 50)], [True, True]),
    "ten other cases": ([row(np.ones(10)), row(np.zeros(10), np.arange(10) + 50)], [True, False]),
    "an item that stands twice is two rows of one case": (
        [
            row(np.repeat(np.arange(100), 2) < k, *[np.repeat(np.arange(100), 2)] * 2)
            for k in (90, 50)
        ],
        [True, False],
    ),
    "costs of the same items": ([row(-BASE), row(-DEARER)], [True, False]),
    "far costs of others": ([row(-BASE), row(-BASE - 30, ELSEWHERE)], [True, False]),
    "equal costs": ([row([-3.0] * 9)] * 3, [True] * 3),
    **{
        f"costs of {value}, whatever their sums are rounded to": (
            [row(np.full(30, -value)), row(np.full(41, -value), np.arange(41) + 500)],
            [True, True],
        )
        for value in (0.1, 0.7, 3.3)
    },
}


@pytest.mark.parametrize("name", SETS)
def test_the_best_rows_of_some(name: str) -> None:
    """And in reverse order; and of what is wrong or paid, where less of it is better."""
    rows, expected = SETS[name]
    bounds = None if "cost" in name else (0.0, 1.0)
    assert best_set(rows, better="higher", bounds=bounds) == expected
    assert best_set(rows[::-1], better="higher", bounds=bounds) == expected[::-1]
    less = [row((bounds or (0, 0))[1] - each.values, each.items, each.cases) for each in rows]
    assert best_set(less, better="lower", bounds=bounds) == expected


def test_values_out_of_bounds_are_refused() -> None:
    with pytest.raises(ValueError, match="differences"):
        best_set([share(90), row(np.full(100, -3.0))], better="higher")


# ranks and tiers ---------------------------------------------------------------------------------


def tiers_of(rows: Sequence[RowValues], **options: Any) -> list[int | None]:
    return [place and place.tier for place in places(rows, better="higher", **options)]


def test_tiers_end_where_all_above_are_shown_better_than_all_below() -> None:
    assert tiers_of([share(50), share(95), share(92), row([]), share(48)]) == [2, 1, 1, None, 2]
    # 60 differs from neither 75 nor 45, which differ from each other: a chain is one tier
    chain = [share(75, first=0), share(60, first=200), share(45, first=400)]
    assert places(chain, better="higher") == [
        Place(tier=1, rank_low=1, rank_high=2),
        Place(tier=1, rank_low=1, rank_high=3),
        Place(tier=1, rank_low=2, rank_high=3),
    ]
    assert places([row([1.0])], better="higher") == [Place(tier=1, rank_low=1, rank_high=1)]
    assert places([], better="higher") == []
    lower = places([share(50), share(95)], better="lower")
    assert [of and of.tier for of in lower] == [1, 2]


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_two_rows_are_told_apart_as_by_a_best_set_at_half_the_error(level: float) -> None:
    rng = np.random.default_rng(5)
    seen = set[bool]()
    for _ in range(40):
        rows = [row(rng.random(40) < 0.5), row(rng.random(40) < 0.75)]
        differ = len({*tiers_of(rows, level=level)}) == 2
        seen.add(differ)
        assert differ == (sum(best_set(rows, better="higher", level=(1 + level) / 2)) == 1)
    assert seen == {True, False}


@pytest.mark.parametrize("apart", [0, N])
@pytest.mark.slow
def test_all_statements_of_a_ranking_hold_together_as_often_as_stated(apart: int) -> None:
    wrong = 0
    for seed in range(REPETITIONS):
        rows = answers(np.random.default_rng(seed), apart=apart)
        found = [place for place in places(rows, better="higher") if place is not None]
        best_ranks = (1, 1, 3, 4)  # of MEANS, whose first two are equal
        worst_ranks = (2, 2, 3, 4)
        wrong += any(
            place.rank_low > worst or place.rank_high < best
            for place, best, worst in zip(found, best_ranks, worst_ranks, strict=True)
        )
    assert wrong <= 0.05 * REPETITIONS * 1.6
