"""What a table is, before it is text: rows, columns, and an estimate in each cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ...statistics.estimates import CONFIDENCE_LEVEL, Estimate
from ..numbers import Unit

Better = Literal["higher", "lower"]
ColumnId = tuple[str, str]
"""A column's section and its key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of figures.

    Attributes:
        section: Such as ``Holistic``; empty where the table has no sections.
        key: Unique within the section, such as ``CR`` or ``E2-H``.
        latex: The title for LaTeX, where it differs; empty otherwise.
        better: Which direction is better; None where neither is.
    """

    section: str
    key: str
    title: str
    latex: str = ""
    unit: Unit
    better: Better | None = None

    @property
    def id(self) -> ColumnId:
        """What a row finds its cell by."""
        return self.section, self.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One figure.

    Attributes:
        best: True where nothing shows that a row that it competes with is better in this column,
            False where something does; None where nothing is compared, or none of those that
            compete is shown to be better than another. The table's notes say which rows compete.
    """

    estimate: Estimate
    best: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The rows behind a section of a table's row: all, and those with a verdict."""

    rows: int
    scored: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One row.

    Attributes:
        judge: Who judged; empty where the table has no judge of its own.
        heads: What it is a row of, one text per entry of the table's ``heads``; first the tested
            model (the judge, where judges are compared), then perhaps a level or a stage.
        counts: By section, the rows behind it; a section that the row says nothing of is missing.
        cells: By column; a figure that is not there is missing.
    """

    judge: str
    heads: tuple[str, ...]
    counts: Mapping[str, Counts]
    cells: Mapping[ColumnId, Cell]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table of the benchmark's paper, for whatever was judged.

    Attributes:
        key: Its name for ``--table``, such as ``overall``.
        number: Its number in arXiv:2606.04874, such as ``Table 1``.
        title: Without a full stop.
        heads: Titles of the leading columns, such as ``Tested model`` and ``Level``.
        columns: Those of one section stand together.
        rows: Those of one judge stand together.
        notes: A sentence each.
        level: Confidence level of its intervals.
    """

    key: str
    number: str
    title: str
    heads: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...] = ()
    level: float = CONFIDENCE_LEVEL

    @property
    def sections(self) -> tuple[str, ...]:
        """Sections in order, each once."""
        return tuple(dict.fromkeys(column.section for column in self.columns))

    @property
    def judges(self) -> tuple[str, ...]:
        """Judges in order, each once; a table of judges has the empty one alone."""
        return tuple(dict.fromkeys(row.judge for row in self.rows))
