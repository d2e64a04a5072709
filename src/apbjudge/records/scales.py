"""Distinguishes a column on another scale from one with a stray number.

A single grade of 4 may be a typo; 85 of them, with 15 grades of 1, are marks from 1 to 5, and each
of those 1s is the worst mark, not the best. Then no number of the column can be used.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..errors import InputError, RowError, visible

Place = Literal["off", "within", "sure"]
"""Place of a number: off the scale; on it, but also on many others; on it and on few others."""

SURE_PER_STRAY = 4
"""Number of ``sure`` values needed for each value off the scale to count it as a slip."""


@dataclass(slots=True)
class _Column:
    first: str = ""
    n_off: int = 0
    n_within: int = 0
    n_sure: int = 0

    @property
    def is_refused(self) -> bool:
        """True if the numbers off the scale are more than slips; a lone number is never refused."""
        n_others = self.n_within + self.n_sure
        return self.n_off > int(n_others == 0) and self.n_sure < SURE_PER_STRAY * self.n_off


class ScaleCheck:
    """Counts the numbers of a file's columns by their places.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._columns: defaultdict[tuple[str, str], _Column] = defaultdict(_Column)

    def add(
        self, who: str, line: int, place: Place, fault: tuple[str, str, object], n: int = 1
    ) -> None:
        """Adds a number, or n equal ones.

        Args:
            who: The rater: each has a scale of their own.
            line: 1-based line of the file.
            place: Place of the number.
            fault: Parts of the complaint about the first number off the scale: its column, the
                expected values, and the number.
            n: Number of equal ones.
        """
        column = self._columns[who, fault[0]]
        if place == "sure":
            column.n_sure += n
        elif place == "within":
            column.n_within += n
        else:
            column.n_off += n
            column.first = column.first or f"{self._path}:{line}: {RowError(*fault)}"

    def count(self, who: str, field: str, n_sure: int, n_within: int) -> None:
        """Adds counts of numbers on the scale; see ``Place``."""
        if n_sure or n_within:
            column = self._columns[who, field]
            column.n_sure += n_sure
            column.n_within += n_within

    def close(self) -> None:
        """Refuses the file if a column is on another scale.

        Raises:
            InputError: Naming the first number off the scale.
        """
        for (who, field), column in self._columns.items():
            if column.is_refused:
                n = column.n_off + column.n_within + column.n_sure
                raise InputError(
                    f"{column.first}; {column.n_off} of the {n} values by {visible(who)} are off "
                    f"this scale, so {field} is on another one and the other values can't be used "
                    "either: convert them to this scale, or leave the column out"
                )
