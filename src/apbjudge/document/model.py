"""Reports before they are text, Markdown, HTML or LaTeX.

A document is a list of parts. Texts are plain: renderers escape them, so that none is read as a
mark, a tag or a command, and none moves a terminal's cursor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeVar

from ..statistics.bootstrap import coverage_note
from ..statistics.estimates import Estimate
from ..statistics.metric import Metric, MetricKind, Unit
from ..statistics.proportions import wilson
from .numbers import count, number

T = TypeVar("T")
Align = Literal["left", "right", "value"]
"""``value``: cells begin at the left, and values before intervals are right-aligned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """An interval as HTML draws it: the ends of its axis, and from where to where it may lie."""

    axis: tuple[float, float]
    allowed: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricCell:
    """An estimate in a cell, with ``/n`` if ``denominator``.

    ``best`` is True in the best set, which is marked, False outside, and None where nothing shows
    that one of those compared is better than another.
    ``name`` and ``place`` are what it is and what it is of in notes on missing figures, which leave
    out those without a name.
    """

    estimate: Estimate
    unit: Unit
    best: bool | None = None
    denominator: bool = True
    name: str = ""
    place: str = ""
    plot: Plot | None = None

    @classmethod
    def showing(cls, metric: Metric, place: str = "", *, denominator: bool = True) -> MetricCell:
        """A metric in its unit, under its name."""
        return cls(
            estimate=metric,
            unit=metric.kind.unit,
            denominator=denominator,
            name=metric.name,
            place=place,
        )

    @property
    def value(self) -> str:
        """The value alone, ``≤`` or ``≥`` before a bound; empty where an interval stands for it."""
        if self.estimate.value is None:
            return "" if self.interval else number(None, self.unit)
        sign = {"upper": "≤ ", "lower": "≥ "}.get(self.estimate.bound, "")
        return sign + number(self.estimate.value, self.unit)

    @property
    def interval(self) -> str:
        """``[low, high]`` or empty.

        Where a bootstrap of a rate of 0 or 1 has no width, Wilson's limits for as many independent
        cases follow.
        """
        of = self.estimate
        if of.low is None or of.high is None:
            return ""
        ends = f"{number(of.low, self.unit)}, {number(of.high, self.unit)}"
        if self.unit == "percent" and of.low == of.high == of.value and of.value in {0, 1}:
            limits = wilson(of.value * of.n_clusters, of.n_clusters, level=of.level)
            ends += f"; Wilson {', '.join(number(end, self.unit) for end in limits)}"
        return f"[{ends}]"

    @property
    def of(self) -> str:
        """``/n`` or empty."""
        return f"/{self.estimate.n_items}" if self.denominator else ""

    def marked(self, before: str, after: str) -> str:
        """``value [low, high] /n``, the value between marks if it is in the best set."""
        value = f"{before}{self.value}{after}" if self.best else self.value
        return " ".join(filter(None, (value, self.interval, self.of)))

    def __str__(self) -> str:
        return self.marked("", "")


@dataclass(frozen=True, slots=True)
class Number:
    """A bare number in a cell; None is shown as a dash."""

    value: float | None
    unit: Unit

    def __str__(self) -> str:
        return number(self.value, self.unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The rows behind a section of a table's row: all, and those with a verdict."""

    rows: int
    scored: int

    def __str__(self) -> str:
        return f"{self.scored}/{self.rows}"


Cell = MetricCell | Number | Counts | str
ColumnId = tuple[str, str]
"""A column's section and the name of its metric."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; what follows is directly below it."""

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
class Column:
    """A column of a table; those of one section share a heading in LaTeX.

    Texts of a column that ``folds`` continue on further lines where the width is limited. ``kind``
    is what the cells of a column of metrics are; the metric's name is unique in the section.
    """

    title: str
    align: Align = "left"
    section: str = ""
    folds: bool = False
    kind: MetricKind | None = None


class Line(NamedTuple):
    """A row of a table by the names of its columns; what it does not have is missing.

    Attributes:
        heads: Its leading texts: what it is a row of.
        counts: By section.
        cells: Metrics, by section and name.
    """

    group: str
    heads: tuple[str, ...]
    counts: dict[str, Counts]
    cells: dict[ColumnId, MetricCell]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table.

    Attributes:
        columns: Those of one section are together.
        rows: A cell a column; empty texts where a row has nothing in a section.
        leads: The first columns, which are repeated where a renderer breaks a wide table.
        groups: Of each row, what it stands under, such as its judge; those of one are together.
            Empty for no groups.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    leads: int = 1
    groups: tuple[str, ...] = ()

    @classmethod
    def of(cls, heads: Iterable[str], rows: Iterable[Sequence[Cell]], *, align: str = "") -> Table:
        """A table from titles and rows.

        ``align`` has a letter a column: ``l``, ``r``, ``v``, or ``f`` for one that folds.
        """
        names: dict[str, Align] = {"l": "left", "r": "right", "v": "value", "f": "left"}
        titles = list(heads)
        columns = (
            Column(title, names[letter], folds=letter == "f")
            for title, letter in zip(titles, align.ljust(len(titles), "l"), strict=False)
        )
        return cls(columns=tuple(columns), rows=tuple(map(tuple, rows)))

    @property
    def heads(self) -> tuple[str, ...]:
        """Titles of the leading columns."""
        return tuple(column.title for column in self.columns[: self.leads])

    @property
    def sections(self) -> tuple[str, ...]:
        """Sections in order, each once."""
        return tuple(dict.fromkeys(column.section for column in self.columns[self.leads :]))

    def columns_of(self, section: str) -> tuple[Column, ...]:
        """The columns of a section."""
        return tuple(column for column in self.columns[self.leads :] if column.section == section)

    def by_group(self) -> dict[str, list[tuple[Cell, ...]]]:
        """Rows by group, in order."""
        rows: dict[str, list[tuple[Cell, ...]]] = {}
        for group, row in zip(self.groups, self.rows, strict=True):
            rows.setdefault(group, []).append(row)
        return rows

    def part(self, group: str, sections: Collection[str]) -> Table:
        """The rows of a group that say something in some sections, and the columns of these.

        A single section has no heading, and its first column is one of the leading ones.
        """
        shown = [i for i, column in enumerate(self.columns) if column.section in sections]
        shown = [i for i in shown if i >= self.leads]
        at, is_one = [*range(self.leads), *shown], len(sections) == 1
        columns = (self.columns[i] for i in at)
        return Table(
            columns=tuple(replace(of, section="") if is_one else of for of in columns),
            rows=tuple(
                tuple(row[i] for i in at)
                for row in self.by_group().get(group, ())
                if any(row[i] != "" for i in shown)
            ),
            leads=self.leads + is_one,
        )

    @property
    def lines(self) -> Iterator[Line]:
        """The rows by the names of their columns."""
        for group, row in zip(self.groups, self.rows, strict=True):
            counts: dict[str, Counts] = {}
            cells: dict[ColumnId, MetricCell] = {}
            for column, cell in zip(self.columns, row, strict=True):
                if isinstance(cell, Counts):
                    counts[column.section] = cell
                elif column.kind and isinstance(cell, MetricCell):
                    cells[column.section, column.kind.name] = cell
            yield Line(group, tuple(map(str, row[: self.leads])), counts, cells)

    @property
    def metrics(self) -> Iterator[MetricCell]:
        """All metrics."""
        return (cell for row in self.rows for cell in row if isinstance(cell, MetricCell))


Part = Heading | Paragraph | Notes | Table


@dataclass(frozen=True, slots=True)
class Document:
    """A report: its parts in order, below a heading of the whole unless that is empty."""

    parts: tuple[Part, ...]
    title: str = ""

    def __iter__(self) -> Iterator[Part]:
        """The parts, the title first."""
        if self.title:
            yield Heading(self.title, 1)
        yield from self.parts


def packed(items: Iterable[tuple[T, float]], room: float) -> Iterator[list[T]]:
    """Items with their sizes, in order, in groups that have room; a group has one item at least."""
    group: list[T] = []
    used = 0.0
    for item, size in items:
        if group and used + size > room:
            yield group
            group, used = [], 0.0
        group.append(item)
        used += size
    if group:
        yield group


def resampled(estimates: Iterable[Estimate]) -> list[str]:
    """Notes on the bootstrap of the intervals, if they were bootstrapped.

    They say how, its measured coverage where that is low, and what intervals of no width stand for.
    """
    bootstrapped = [of for of in estimates if of.method in {"percentile", "bca"}]
    if not bootstrapped:
        return []
    of = bootstrapped[0]
    note = coverage_note(of.method, min(of.n_clusters for of in bootstrapped))
    how = f"{count(of.n_resamples)} resamples, seed {of.seed}"
    flat = (of.note for of in bootstrapped if of.low == of.high)
    lines = (f"intervals: {of.method} bootstrap over cases, {how}", note, *dict.fromkeys(flat))
    return [*filter(None, lines)]


def missing(parts: Iterable[Part], *, intervals: bool = False) -> list[str]:
    """Notes on the resampling of intervals in tables, if they were resampled (``resampled``).

    And why named figures have no value (or no interval), as ``reasons``.
    """
    figures = [cell for part in parts if isinstance(part, Table) for cell in part.metrics]
    return resampled(figure.estimate for figure in figures) + reasons(
        (figure.estimate.note, figure.name, figure.place)
        for figure in figures
        if figure.name and figure.estimate.note and figure.estimate.low is None
        if figure.estimate.value is None or (intervals and figure.estimate.method != "hand-picked")
    )


def reasons(notes: Iterable[tuple[str, str, str]]) -> list[str]:
    """Reasons for missing or rough figures, a line each such as ``recall (E1, E3), F1: no item``.

    A note is a reason, a figure, and what the figure is of, empty for the whole.
    """
    by_reason: dict[str, dict[str, dict[str, None]]] = {}
    for reason, name, place in notes:
        by_reason.setdefault(reason, {}).setdefault(name, {})[place] = None
    lines: list[str] = []
    for reason, figures in by_reason.items():
        together: dict[tuple[str, ...], list[str]] = {}  # figures of the same parts share brackets
        for name, places in figures.items():
            together.setdefault(tuple(places), []).append(name)
        listed = (
            ", ".join(names)
            + ("" if places == ("",) else f" ({', '.join(place or 'all' for place in places)})")
            for places, names in together.items()
        )
        lines.append(f"{', '.join(listed)}: {reason}")
    return lines
