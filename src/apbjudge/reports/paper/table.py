"""A table of the benchmark's paper, or of our own: its columns, rows and cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ...statistics.best import RowValues
from ...statistics.estimates import CONFIDENCE_LEVEL, Estimate
from ...statistics.metric import (
    Bounds,
    Direction,
    MetricKind,
    Unit,
)

PAPER_ID = "arXiv:2606.04874"
ColumnId = tuple[str, str]
"""A column's section and its key."""
Counted = Literal["scored", "pairs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperColumn:
    """A column of metrics.

    Attributes:
        key: Name of the metric, unique within the ``section``.
        better: None where neither direction is.
        meaning: Explains the title, behind a colon.
    """

    key: str
    title: str
    unit: Unit
    better: Direction | None = None
    bounds: Bounds | None = None
    section: str = ""
    meaning: str = ""

    @classmethod
    def of(cls, kind: MetricKind, section: str = "") -> PaperColumn:
        """The column of a metric."""
        return cls(
            key=kind.name,
            title=kind.heading,
            unit=kind.unit,
            better=kind.better,
            bounds=kind.bounds,
            section=section,
            meaning=kind.meaning,
        )

    @property
    def id(self) -> ColumnId:
        """The key of its cell in a row."""
        return self.section, self.key


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperCell:
    """One metric.

    Attributes:
        best: True where nothing shows that a row that it competes with is better in this column,
            False where something does; None where nothing is compared, or none of those that
            compete is shown to be better than another. The table's notes say which rows compete.
        row_values: The values that the metric is the mean of, until the best set is marked.
    """

    estimate: Estimate
    best: bool | None = None
    row_values: RowValues | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The rows behind a section of a table's row: all, and those with a verdict."""

    rows: int
    scored: int


@dataclass(slots=True)
class TableRow:
    """One row.

    Attributes:
        judge: Who judged; empty where the table has no judge of its own.
        heads: What it is a row of, one text per entry of the table's ``heads``; first the tested
            model (the judge, where judges are compared), then perhaps a level or a stage.
        counts: By section, the rows behind it; a section that the row says nothing of is missing.
        cells: By column; a metric that is not there is missing.
    """

    judge: str
    heads: tuple[str, ...]
    counts: dict[str, Counts] = field(default_factory=dict[str, Counts])
    cells: dict[ColumnId, PaperCell] = field(default_factory=dict[ColumnId, PaperCell])

    def add(
        self,
        section: str,
        counts: Counts,
        estimates: Mapping[str, Estimate],
        values: Mapping[str, RowValues | None] | None = None,
    ) -> TableRow:
        """The same row with one section more; its metrics by key."""
        self.counts[section] = counts
        for key, estimate in estimates.items():
            row_values = (values or {}).get(key)
            self.cells[section, key] = PaperCell(estimate=estimate, row_values=row_values)
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperTable:
    """One table of a paper, for whatever was judged.

    Attributes:
        key: Its name for ``--table``, such as ``overall``.
        number: Its number in the paper, such as ``Table 1``; empty for a table of our own.
        paper: The paper, by its arXiv id.
        heads: Titles of the leading columns, such as ``Tested model`` and ``Level``.
        columns: Those of one section are together.
        rows: Those of one judge are together.
        counted: What the second number of ``Counts`` counts: rows ``scored``, or ``pairs``.
        level: Confidence level of its intervals.
    """

    key: str
    number: str
    title: str
    heads: tuple[str, ...]
    columns: tuple[PaperColumn, ...]
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...] = ()
    counted: Counted = "scored"
    level: float = CONFIDENCE_LEVEL
    paper: str = PAPER_ID

    @property
    def sections(self) -> tuple[str, ...]:
        """Sections in order, each once."""
        return tuple(dict.fromkeys(column.section for column in self.columns))

    @property
    def judges(self) -> tuple[str, ...]:
        """Judges in order, each once; a table of judges has the empty one alone."""
        return tuple(dict.fromkeys(row.judge for row in self.rows))
