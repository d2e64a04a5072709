"""What one rater said of many items: a judge, a human, or what most humans say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .intervals import Array, Ids

CODES = ("E1", "E2", "E3", "E4", "E5", "E6")
LEVELS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Grades of the Agent Planning Benchmark (arXiv:2606.04874)."""

ALL_KNOWN = 63
Filling = Literal["worst", "best", "lowest", "highest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratings:
    """One rater on n items, aligned by position with other raters of the same items.

    Attributes:
        correct: Shape (n,), int8: 1 correct, 0 incorrect, -1 nothing said. A judge that says
            nothing here left the item unscored.
        grade: Shape (n,), int8: index into the levels, -1 nothing said.
        flags: Shape (n,), uint8: bit i is set where code E(i+1) is.
        known: Shape (n,), uint8: bit i is set where something was said of code E(i+1).
    """

    correct: Ids
    grade: Ids
    flags: Ids
    known: Ids

    def __len__(self) -> int:
        return len(self.correct)

    def take(self, rows: Ids) -> Ratings:
        """The ratings of some items.

        Args:
            rows: Indices or marks, as numpy takes them.
        """
        return Ratings(
            correct=self.correct[rows],
            grade=self.grade[rows],
            flags=self.flags[rows],
            known=self.known[rows],
        )


def levels_of(*grades: Array) -> tuple[float, ...]:
    """The levels of the benchmark and whatever else occurs, in order.

    Args:
        grades: Grades, NaN where there is none.
    """
    found = {round(float(g), 9) for part in grades for g in np.unique(part[~np.isnan(part)])}
    return tuple(sorted({*LEVELS, *found}))


def grade_codes(grades: Array, levels: tuple[float, ...]) -> Ids:
    """Indices of grades in the levels, -1 for NaN.

    Args:
        grades: Shape (n,).
        levels: As ``levels_of`` gives them for these grades.
    """
    codes = np.searchsorted(np.asarray(levels), np.nan_to_num(grades) - 1e-6)
    return np.where(np.isnan(grades), -1, codes).astype(np.int8)


def filled(judge: Ratings, human: Ratings, levels: tuple[float, ...], how: Filling) -> Ratings:
    """The judge's ratings with an extreme answer wherever it left an item unscored.

    Args:
        judge: The judge.
        human: The humans, on the same items.
        levels: Grades behind the indices.
        how: ``worst``: all that is said is the opposite of the human's; ``best``: it is the
            human's; ``lowest``: incorrect, grade 0, every flag; ``highest``: correct, grade 1,
            no flag.
    """
    correct, grade, flags = _answer(human, levels, how)
    unscored = judge.correct < 0
    return Ratings(
        correct=np.where(unscored, np.maximum(correct, 0), judge.correct),
        grade=np.where(unscored & (human.grade >= 0), grade, judge.grade),
        flags=np.where(unscored, flags, judge.flags),
        known=np.where(unscored, human.known, judge.known),
    )


def _answer(human: Ratings, levels: tuple[float, ...], how: Filling) -> tuple[Ids, Ids, Ids]:
    said = human.correct >= 0
    if how == "best":
        return human.correct, human.grade, human.flags
    if how == "worst":
        far = np.asarray(levels)[human.grade] < (levels[0] + levels[-1]) / 2
        return (
            np.where(said, 1 - human.correct, -1),
            np.where(far, len(levels) - 1, 0),
            ~human.flags & human.known,
        )
    high = how == "highest"
    n = len(human)
    return (
        np.where(said, int(high), -1),
        np.full(n, len(levels) - 1 if high else 0),
        np.full(n, 0 if high else ALL_KNOWN, dtype=np.uint8) & human.known,
    )
