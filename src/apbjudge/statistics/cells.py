"""Items sorted into cells: what the judge said, against what the humans said.

Each function gives one code per item; the code after the last cell marks an item that is not
compared.
"""

from __future__ import annotations

import numpy as np

from .intervals import Ids
from .ratings import Ratings

U0, U1, TN, FN, FP, TP = range(6)
"""Cells of a yes or no: unscored while the humans say no or yes, then the 2x2 table."""

N_CELLS = 6
N_FLAGS = 6
N_COMPARED = (N_FLAGS + 1) ** 2


def correct_cells(judge: Ratings, human: Ratings) -> Ids:
    """Cell of ``is_correct``; 6 where the humans said nothing.

    Args:
        judge: The judge on n items.
        human: The humans on the same.
    """
    cells = (judge.correct + 1) * 2 + human.correct
    return np.where(human.correct >= 0, cells, np.int8(N_CELLS))


def code_cells(judge: Ratings, human: Ratings, i: int) -> Ids:
    """Cell of error code E(i+1), as for ``is_correct``; 6 where one of them said nothing.

    Args:
        judge: The judge on n items.
        human: The humans on the same.
        i: 0 to 5.
    """
    unscored = judge.correct < 0
    ours = np.where(unscored, np.uint8(0), ((judge.flags >> i) & 1) + 1)
    told = (human.known >> i) & (unscored | (judge.known >> i)) & 1
    return np.where(told == 1, ours * 2 + ((human.flags >> i) & 1), np.uint8(N_CELLS))


def grade_cells(judge: Ratings, human: Ratings, k: int) -> Ids:
    """Cell (judge's grade, humans' grade); the judge's row is ``k`` where an item is unscored.

    Args:
        judge: The judge on n items.
        human: The humans on the same.
        k: Number of levels.

    Returns:
        Shape (n,), below k * (k + 1), and that where one of them gave no grade.
    """
    unscored = judge.correct < 0
    row = np.where(unscored, k, judge.grade).astype(np.int16)
    told = (human.grade >= 0) & (row >= 0)
    return np.where(told, row * k + human.grade, k * (k + 1))


def error_cells(judge: Ratings, human: Ratings, *, count_unscored: bool) -> Ids:
    """Cell (whether the humans found the item incorrect, flags compared, flags that agree).

    Args:
        judge: The judge on n items.
        human: The humans on the same.
        count_unscored: Whether an unscored item counts, with no flag that agrees.

    Returns:
        Shape (n,), below 2 * 49, and that where no flag is compared.
    """
    unscored = judge.correct < 0
    shared = human.known & np.where(unscored, np.uint8(255 * count_unscored), judge.known)
    same = np.where(unscored, np.uint8(0), _bits(shared & ~(judge.flags ^ human.flags)))
    n = _bits(shared)
    incorrect = (human.correct == 0).astype(np.uint8)
    cells = incorrect * np.uint8(N_COMPARED) + n * np.uint8(N_FLAGS + 1) + same
    return np.where(n > 0, cells, np.uint8(2 * N_COMPARED))


def _bits(masks: Ids) -> Ids:
    """How many bits are set, for a million bytes in a fraction of what a table takes."""
    pairs = masks - ((masks >> 1) & 0x55)
    fours = (pairs & 0x33) + ((pairs >> 2) & 0x33)
    return (fours + (fours >> 4)) & 0x0F
