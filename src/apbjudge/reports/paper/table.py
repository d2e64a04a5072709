"""A table of the benchmark's paper, or of our own, and its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ...document.model import ColumnId, Counts, Table
from ...statistics.best import RowValues
from ...statistics.estimates import Estimate

PAPER_ID = "arXiv:2606.04874"
Counted = Literal["scored", "pairs"]


@dataclass(slots=True)
class TableRow:
    """One row, before it is part of a table.

    Attributes:
        judge: The judge; empty in a table that compares judges.
        heads: Subject of the row, one text per entry of the table's ``heads``; first the tested
            model (or the judge, if judges are compared), then possibly a level or a stage.
        counts: By section, the number of its rows; sections without data are missing.
        estimates: By column; metrics without data are missing.
        values: By column, the values whose mean is the metric, if it competes with others.
        best: By column, True in the best set and False outside; missing if the set is unknown.
    """

    judge: str
    heads: tuple[str, ...]
    counts: dict[str, Counts] = field(default_factory=dict[str, Counts])
    estimates: dict[ColumnId, Estimate] = field(default_factory=dict[ColumnId, Estimate])
    values: dict[ColumnId, RowValues] = field(default_factory=dict[ColumnId, RowValues])
    best: dict[ColumnId, bool] = field(default_factory=dict[ColumnId, bool])

    def add(
        self,
        section: str,
        counts: Counts,
        estimates: Mapping[str, Estimate],
        values: Mapping[str, RowValues | None] | None = None,
    ) -> TableRow:
        """The row with one more section; its metrics by name."""
        self.counts[section] = counts
        self.estimates |= {(section, key): estimate for key, estimate in estimates.items()}
        self.values |= {(section, key): of for key, of in (values or {}).items() if of is not None}
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperTable(Table):
    """One table of a paper, for any judgements; its groups are the judges.

    The first column of each section has the number of its rows (``Counts``).

    Attributes:
        key: Its name for ``--table``, such as ``overall``.
        number: Its number in the paper, such as ``Table 1``; empty for a table of our own.
        paper: The paper, by its arXiv id.
        counted: Meaning of the second number of ``Counts``: rows ``scored``, or ``pairs``.
    """

    key: str
    number: str
    title: str
    notes: tuple[str, ...] = ()
    counted: Counted = "scored"
    paper: str = PAPER_ID

    @property
    def judges(self) -> tuple[str, ...]:
        """Judges in order, each once; only the empty name in a table that compares judges."""
        return tuple(dict.fromkeys(self.groups))
