"""The ratings of one rater on many items: a judge, a human, or the majority."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from .estimates import Array, Ids

CODES = ("E1", "E2", "E3", "E4", "E5", "E6")
LEVELS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Grades of the Agent Planning Benchmark (arXiv:2606.04874)."""
NEAR = 0.01
"""Grades that differ by less are one level: they agree to two decimals, rounded or truncated."""
MAX_LEVELS = 101
"""Greatest number of levels; grades with more values, such as those of a slider, count to two
decimals."""
_NEAR = NEAR - 1e-9  # so that hundredths stay distinct however they are stored
_EXACT = 1e-6
_MOST_STEPS = 10
Filling = Literal["worst", "best", "lowest", "highest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratings:
    """One rater on n items, aligned by position with other raters of the same items.

    Attributes:
        correct: Shape (n,), int8: 1 correct, 0 incorrect, -1 no answer; for a judge, an unscored
            item.
        grade: Shape (n,), int16: index into the levels, -1 no grade.
        flags: Shape (n,), unsigned: bit i is set where code ``codes[i]`` is stated.
        known: Shape (n,), unsigned: bit i is set where there is an answer for code ``codes[i]``.
        codes: The error codes behind the bits.
    """

    correct: Ids
    grade: Ids
    flags: Ids
    known: Ids
    codes: tuple[str, ...] = CODES

    def __len__(self) -> int:
        return len(self.correct)

    def take(self, rows: Ids) -> Ratings:
        """The ratings of some items."""
        return replace(
            self,
            correct=self.correct[rows],
            grade=self.grade[rows],
            flags=self.flags[rows],
            known=self.known[rows],
        )


def levels_of(*grades: Array, scale: tuple[float, ...] | None = None) -> tuple[float, ...]:
    """The levels of the grades' scale, in order.

    Grades within less than ``NEAR`` of each other, such as 0.33 and 1/3, are one level. In this
    order of preference the levels are

    1. those of the given scale, if all grades are on it;
    2. the evenly spaced levels k/m, for the smallest m up to 10 that fits all grades exactly, or
        rounded or truncated to two or more decimals; if not exactly, at least half of the levels
        must occur;
    3. the ends 0 and 1 and the grades that occur; above ``MAX_LEVELS`` of them, to two decimals.

    Args:
        grades: Grades from 0 to 1, NaN where there is none.
        scale: The expected scale; None for the benchmark's.

    When not to use it: where the scale is known, since a coefficient such as AC2 depends on unused
    levels too.
    """
    known = LEVELS if scale is None else tuple(sorted(scale))
    values = sorted(
        {round(float(g), 9) for part in grades for g in np.unique(part[~np.isnan(part)])}
    )
    if all(min(abs(value - level) for level in known) < _NEAR for value in values):
        return known
    for steps in range(2, _MOST_STEPS + 1):
        if (even := _even_levels(values, steps)) is not None:
            return even
    return with_levels((0.0, 1.0), values)


def with_levels(levels: Sequence[float], grades: Iterable[float]) -> tuple[float, ...]:
    """Levels, with one added for each grade that is none of them."""
    known = sorted(levels)
    more: list[list[float]] = []
    for value in sorted({round(float(grade), 9) for grade in grades}):
        if min(abs(value - level) for level in known) < _NEAR:
            continue
        if more and value - more[-1][-1] < _NEAR:
            more[-1].append(value)
        else:
            more.append([value])
    extended = {*known}
    for near in more:
        is_one = near[-1] - near[0] < _NEAR
        extended |= {max(near, key=lambda value: len(repr(value)))} if is_one else {*near}
    if len(extended) > MAX_LEVELS:
        extended = {round(level, 2) for level in extended}
    return tuple(sorted(extended))


def _even_levels(values: Sequence[float], steps: int) -> tuple[float, ...] | None:
    """The levels k/steps; None if a value is not among them, or too few occur."""
    nearest = [round(value * steps) / steps for value in values]
    pairs = list(zip(values, nearest, strict=True))
    if not all(_is_written(value, level) for value, level in pairs):
        return None
    is_exact = all(abs(value - level) < _EXACT for value, level in pairs)
    if not is_exact and 2 * len(set(nearest)) < steps + 1:
        return None
    return tuple(step / steps for step in range(steps + 1))


def _is_written(value: float, level: float) -> bool:
    """True if a number is a level, exactly, or rounded or truncated to two or more decimals."""
    if abs(value - level) < _EXACT:
        return True
    decimals = len(repr(value).partition(".")[2])
    cut = np.floor(level * 10**decimals) / 10**decimals
    return decimals >= 2 and min(abs(value - round(level, decimals)), abs(value - cut)) < _EXACT


def grade_codes(grades: Array, levels: tuple[float, ...]) -> Ids:
    """Indices of the nearest levels, -1 for NaN.

    Args:
        grades: Shape (n,).
        levels: Levels from ``levels_of`` for these grades.

    Returns:
        Shape (n,), int16.
    """
    known = np.asarray(levels)
    codes = np.searchsorted((known[1:] + known[:-1]) / 2, np.nan_to_num(grades))
    return np.where(np.isnan(grades), -1, codes).astype(np.int16)


def filled(judge: Ratings, human: Ratings, levels: tuple[float, ...], how: Filling) -> Ratings:
    """The judge's ratings with an extreme answer for each unscored item."""
    n, top, high = len(human), len(levels) - 1, how == "highest"
    if how == "best":
        correct, grade, flags = human.correct, human.grade, human.flags
    elif how == "worst":
        far = np.asarray(levels)[human.grade] < (levels[0] + levels[-1]) / 2
        correct, grade, flags = 1 - human.correct, np.where(far, top, 0), ~human.flags
    else:
        correct, grade = np.full(n, int(high)), np.full(n, top if high else 0)
        flags = np.zeros_like(human.known) if high else human.known
    unscored = judge.correct < 0
    correct = np.where(human.correct >= 0, correct, 0)
    return replace(
        judge,
        correct=np.where(unscored, correct, judge.correct),
        grade=np.where(unscored & (human.grade >= 0), grade, judge.grade),
        flags=np.where(unscored, flags & human.known, judge.flags),
        known=np.where(unscored, human.known, judge.known),
    )
