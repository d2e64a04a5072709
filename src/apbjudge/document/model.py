"""Reports before they are text, Markdown, HTML or LaTeX.

A document is a list of parts. Texts are plain: renderers escape them, so that none is read as a
mark, a tag or a command, and none moves a terminal's cursor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from ..statistics.bootstrap import coverage_note
from ..statistics.estimates import Estimate
from ..statistics.metric import Metric, Unit
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
    """An estimate in a cell, with ``/n`` if ``denominator``; ``best`` for the best set, marked.

    ``name`` and ``place`` are what it is and what it is of in notes on missing figures, which leave
    out those without a name.
    """

    estimate: Estimate
    unit: Unit
    best: bool = False
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


Cell = MetricCell | Number | str


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

    Texts of a column that ``folds`` continue on further lines where the width is limited.
    """

    title: str
    align: Align = "left"
    section: str = ""
    folds: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; its first columns, ``leads``, are repeated where a renderer breaks a wide one."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    leads: int = 1

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
    """The bootstrap of the intervals, and its measured coverage where it is low; else nothing."""
    bootstrapped = [of for of in estimates if of.method in {"percentile", "bca"}]
    if not bootstrapped:
        return []
    of = bootstrapped[0]
    note = coverage_note(of.method, min(of.n_clusters for of in bootstrapped))
    how = f"{count(of.n_resamples)} resamples, seed {of.seed}"
    lines = (f"intervals: {of.method} bootstrap over cases, {how}", note)
    return [*filter(None, lines)]


def missing(parts: Iterable[Part], *, intervals: bool = False) -> list[str]:
    """Notes on the resampling of intervals in tables, if they were resampled (``resampled``).

    And why named figures have no value (or no interval), as ``reasons``.
    """
    tables = [part for part in parts if isinstance(part, Table)]
    cells = [cell for table in tables for row in table.rows for cell in row]
    figures = [cell for cell in cells if isinstance(cell, MetricCell)]
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
