"""Confusion matrices: what one rater said against what another said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .coded import Coded
from .intervals import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """Counts of what one rater said against what another said.

    Attributes:
        first: Labels of the rows, the judge's answers; ``unscored`` may be among them.
        second: Labels of the columns, the humans' answers.
        counts: Shape (len(first), len(second)): items, or sums of their weights of mean 1.
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    counts: tuple[tuple[float, ...], ...]


def confusions(
    correct: Coded, grades: Coded, codes: Mapping[str, Coded], levels: tuple[float, ...]
) -> dict[str, Confusion]:
    """The matrices of ``is_correct``, the grade and each error code, where there is anything.

    Args:
        correct: Cells of ``is_correct``.
        grades: Cells of the grade.
        codes: Cells of each error code.
        levels: The grades.
    """
    names = tuple(f"{level:g}" for level in levels)
    k = len(levels)
    tables = {
        "is_correct": confusion(_unscored_last(correct), ("no", "yes")),
        "grade": confusion(grades.counts.reshape(k + 1, k), names),
        **{code: confusion(_unscored_last(cells), ("no", "yes")) for code, cells in codes.items()},
    }
    return {name: table for name, table in tables.items() if table is not None}


def _unscored_last(cells: Coded) -> Array:
    return np.roll(cells.counts.reshape(3, 2), -1, axis=0)


def confusion(table: Array, names: tuple[str, ...]) -> Confusion | None:
    """A matrix whose last row holds the unscored items, which is left out when there are none.

    Args:
        table: Shape (k + 1, k).
        names: The k answers.

    Returns:
        The matrix, or None when nothing is in it.
    """
    if not table.any():
        return None
    kept = len(names) + int(table[-1].any())
    return Confusion(
        first=(*names, "unscored")[:kept],
        second=names,
        counts=tuple(tuple(float(cell) for cell in row) for row in table[:kept]),
    )
