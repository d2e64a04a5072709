"""The scale that grades are on, and which of them are one level."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.statistics import LEVELS, Sample, grade_codes, levels_of
from apbjudge.statistics.ratings import MAX_LEVELS, NEAR, with_levels
from apbjudge.statistics.sample import tabulate

THIRDS = (0.0, 1 / 3, 2 / 3, 1.0)


def levels(*grades: float, scale: tuple[float, ...] | None = None) -> tuple[float, ...]:
    return levels_of(np.array(grades, dtype=float), scale=scale)


@pytest.mark.parametrize(
    ("grades", "expected"),
    [
        ((), LEVELS),
        ((0.2, 0.8), LEVELS),
        (THIRDS, THIRDS),
        ((0, 1 / 3, 0.33, 0.667, 0.67), THIRDS),
        ((0.1, 0.4), tuple(step / 10 for step in range(11))),
        ((0, 0.37, 0.81), (0, 0.37, 0.81, 1)),
        ((0, 0.37), (0, 0.37, 1)),  # not eighths: three levels of nine are no evidence
        ((0.2, 1 / 3), (0, 0.2, 1 / 3, 1)),
    ],
)
def test_the_scale_is_that_of_the_grades(
    grades: tuple[float, ...], expected: tuple[float, ...]
) -> None:
    assert levels(*grades) == pytest.approx(expected, abs=1e-8)


def test_the_rubric_s_scale_comes_first() -> None:
    assert levels(0, 1, scale=(1.0, 0.5, 0.0)) == (0.0, 0.5, 1.0)
    assert levels(0, 0.2, 1, scale=(1.0, 0.5, 0.0)) == LEVELS


@given(st.integers(1, 10), st.data())
def test_precision_makes_no_level(steps: int, data: st.DataObject) -> None:
    steps = max(steps, 2)
    exact = [step / steps for step in range(steps + 1)]
    decimals = data.draw(st.lists(st.integers(2, 6), min_size=len(exact), max_size=len(exact)))
    written = [round(level, digits) for level, digits in zip(exact, decimals, strict=True)]
    result = levels(*exact, *written)
    codes = grade_codes(np.array([*exact, *written]), result)
    assert codes[: len(exact)].tolist() == codes[len(exact) :].tolist()
    assert len(set(codes.tolist())) == steps + 1


@given(st.lists(st.floats(0, 1), max_size=300))
def test_levels_lie_apart_from_0_to_1_and_every_grade_has_one(grades: list[float]) -> None:
    result = levels(*grades)
    assert (result[0], result[-1]) == (0.0, 1.0)
    assert list(result) == sorted(set(result))
    assert len(result) <= MAX_LEVELS
    nearest = np.asarray(result)[grade_codes(np.array(grades), result)]
    assert np.all(np.abs(nearest - grades) < NEAR)


def test_a_chain_of_near_grades_is_not_one_level() -> None:
    assert len(with_levels(LEVELS, [0.5, 0.507, 0.514])) == len(LEVELS) + 3
    assert len(with_levels(LEVELS, [0.5, 0.507])) == len(LEVELS) + 1


def test_many_levels_take_memory_for_the_cells_that_occur() -> None:
    n_codes = MAX_LEVELS * (MAX_LEVELS + 1)
    (kinds,) = tabulate(np.array([0, 5, 5, n_codes - 1]), n_codes, Sample())
    assert kinds.tables.shape == (3, n_codes)
    assert kinds.counts.tolist() == [1, 2, 1]
    assert kinds.observed[5] == 2
