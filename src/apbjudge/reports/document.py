"""What every report is before it is text, Markdown, HTML or LaTeX.

A document is a list of parts. Texts are plain: renderers escape them, so that none is read as a
mark, a tag or a command, and none moves a terminal's cursor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ..statistics.estimates import Estimate
from .numbers import Unit, figure, interval, number, unit_of

Align = Literal["left", "right", "value"]
"""``value``: cells begin at the left, and values before intervals are right-aligned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """An estimate in a cell.

    Attributes:
        best: Whether it is in the best set, which renderers mark.
        denominator: Whether ``/n`` is shown; a missing value may go without.
    """

    estimate: Estimate
    unit: Unit
    best: bool = False
    denominator: bool = True

    @classmethod
    def named(cls, name: str, estimate: Estimate) -> Figure:
        """The figure of a reliability measure, whose name says its unit."""
        return cls(estimate=estimate, unit=unit_of(name))

    @property
    def value(self) -> str:
        """The value alone; empty where an interval stands in its place."""
        if self.estimate.value is None and self.interval:
            return ""
        return number(self.estimate.value, self.unit)

    @property
    def interval(self) -> str:
        """``[low, high]`` or empty."""
        return interval(self.estimate, self.unit)

    @property
    def of(self) -> str:
        """``/n`` or empty."""
        return f"/{self.estimate.n_items}" if self.denominator else ""

    def __str__(self) -> str:
        return figure(self.estimate, self.unit, denominator=self.denominator)


@dataclass(frozen=True, slots=True)
class Number:
    """A bare number in a cell; None is shown as a dash."""

    value: float | None
    unit: Unit

    def __str__(self) -> str:
        return number(self.value, self.unit)


Cell = Figure | Number | str


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; what follows stands directly below it."""

    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text, without line breaks of its own."""

    text: str


@dataclass(frozen=True, slots=True)
class Notes:
    """Short remarks, one a line."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Preformatted:
    """Text whose line breaks and spaces stay."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table.

    Attributes:
        title: Plain text.
        align: How its cells stand.
        latex: The title as LaTeX, where it differs; empty otherwise.
        section: Columns of the same section share a heading in LaTeX; empty for none.
    """

    title: str
    align: Align = "left"
    latex: str = ""
    section: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table.

    Attributes:
        rows: Each as long as ``columns``.
        leads: Columns that are repeated where a renderer breaks a wide table.
        caption: For formats whose tables have one.
        label: LaTeX label; empty for none.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    leads: int = 1
    caption: str = ""
    label: str = ""

    @classmethod
    def of(
        cls,
        heads: Iterable[str],
        rows: Iterable[Sequence[Cell]],
        *,
        align: str = "",
        leads: int = 1,
    ) -> Table:
        """A table from titles and rows.

        Args:
            heads: Titles of the columns.
            rows: The cells.
            align: A letter a column, ``l``, ``r`` or ``v``; columns beyond it are left-aligned.
            leads: See ``leads``.
        """
        names: dict[str, Align] = {"l": "left", "r": "right", "v": "value"}
        titles = list(heads)
        columns = tuple(
            Column(title=title, align=names[letter])
            for title, letter in zip(titles, align.ljust(len(titles), "l"), strict=False)
        )
        return cls(columns=columns, rows=tuple(map(tuple, rows)), leads=leads)


Part = Heading | Paragraph | Notes | Table | Preformatted


@dataclass(frozen=True, slots=True)
class Document:
    """A report.

    Attributes:
        parts: In order.
        title: The heading of the whole; empty for none.
    """

    parts: tuple[Part, ...]
    title: str = ""
