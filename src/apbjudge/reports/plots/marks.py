"""What a figure draws, taken from a table's cells and never computed again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from ...statistics.proportions import counted
from ..paper.table import Column, Table, Unit
from .names import in_words
from .seam import Frame, frame, texts

_ORDER = ("early", "middle", "late")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One drawn figure.

    Attributes:
        judge: Who judged; empty in a comparison of judges.
        name: Whose figure it is, in full: the tested model, or the judge.
        section: Its column's section.
        column: Its column's key.
        at: Where on the axis, such as ``2`` steps; empty where there is no such axis.
        unit: Unit of the value, as in the table.
        value: The figure; a rate from 0 to 1.
        low: Lower end of its interval, None without one.
        high: Upper end.
        level: Confidence level of the interval.
        n: Rows that it is about.
        n_clusters: Distinct cases among them.
    """

    judge: str
    name: str
    section: str
    column: str
    at: str
    unit: Unit
    value: float
    low: float | None
    high: float | None
    level: float
    n: int
    n_clusters: int

    @property
    def ends(self) -> tuple[float, float]:
        """The interval; the figure itself where there is none."""
        if self.low is None or self.high is None:
            return self.value, self.value
        return self.low, self.high


Wanted = Callable[[Column], bool]
_COLUMNS = tuple(Mark.__dataclass_fields__)


def marks_of(table: Table, judge: str, wanted: Wanted) -> tuple[Mark, ...]:
    """The figures of one judge in the wanted columns, by row; those without a value are left out.

    Args:
        table: The table.
        judge: The judge whose rows are meant.
        wanted: Says which columns are meant.
    """
    columns = [column for column in table.columns if wanted(column)]
    return tuple(
        Mark(
            judge=judge,
            name=row.heads[0],
            section=column.section,
            column=column.key,
            at=row.heads[1] if len(row.heads) > 1 else "",
            unit=column.unit,
            value=cell.estimate.value,
            low=cell.estimate.low,
            high=cell.estimate.high,
            level=cell.estimate.level,
            n=cell.estimate.n_items,
            n_clusters=cell.estimate.n_clusters,
        )
        for row in table.rows
        if row.judge == judge
        for column in columns
        if (cell := row.cells.get(column.id)) is not None and cell.estimate.value is not None
    )


def data_of(marks: Sequence[Mark]) -> Frame:
    """What is drawn, a line per figure."""
    return frame([asdict(mark) for mark in marks], _COLUMNS)


def drawn_texts(data: Frame) -> set[str]:
    """The texts of a figure's data that are drawn and that users choose."""
    return {text for name in ("name", "at") if name in data for text in texts(data, name)}


def as_share(mark: Mark) -> Mark:
    """A count of rows as a share of them; with an interval where the rows share no case."""
    share = counted(round(mark.value), mark.n, level=mark.level)
    alone = mark.n == mark.n_clusters
    low, high = (share.low, share.high) if alone else (None, None)
    return replace(mark, unit="percent", value=share.value or 0.0, low=low, high=high)


def distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Each once, in order."""
    return tuple(dict.fromkeys(texts))


def natural(places: Iterable[str]) -> tuple[str, ...]:
    """Places of an axis, each once, in their natural order: numbers, or stages of a run."""
    found = distinct(places)
    numbers = {place: re.match(r"\d{1,18}(?!\d)", place) for place in found}
    if all(numbers.values()):
        return tuple(sorted(found, key=lambda place: int((numbers[place] or [0])[0])))
    return tuple(sorted(found, key=_rank))


def _rank(place: str) -> int:
    low = place.lower()
    return _ORDER.index(low) if low in _ORDER else len(_ORDER)


def by_value(marks: Sequence[Mark]) -> tuple[str, ...]:
    """Names, the one with the highest figures first.

    The first section decides for all that have it; those without it follow.
    """
    sections = distinct(mark.section + mark.column for mark in marks)
    found: dict[str, dict[str, float]] = {}
    for mark in marks:
        found.setdefault(mark.name, {})[mark.section + mark.column] = mark.value
    return tuple(
        sorted(found, key=lambda name: [-found[name].get(key, -1.0) for key in sections] + [0.0])
    )


def shown(value: float, unit: Unit) -> str:
    """A figure as a text with its unit."""
    if unit in {"percent", "points"}:
        return f"{percent(value)} %"
    return f"{value:.0f}" if unit == "count" else f"{value:.2f}"


def percent(share: float) -> str:
    """A rate times 100 with two digits, three only for 100."""
    value = 100 * share
    if value == 0:
        return "0"
    return f"{value:.1f}" if abs(value) < 9.95 else f"{value:.0f}"


def extremes(marks: Sequence[Mark], titles: dict[str, str] | None = None) -> str:
    """A sentence that names the highest and the lowest of the figures.

    Args:
        marks: The figures, at least one, all of one unit.
        titles: What columns are called, where their keys say too little.
    """
    low = min(marks, key=lambda mark: mark.value)
    high = max(marks, key=lambda mark: mark.value)
    if low.value == high.value:
        return f"All {len(marks)} figures are {shown(high.value, high.unit)}."
    ends = [_named(end, titles or {}) + _others(end, marks) for end in (high, low)]
    return f"Highest: {ends[0]}; lowest: {ends[1]}."


def _others(end: Mark, marks: Sequence[Mark]) -> str:
    many = sum(mark.value == end.value for mark in marks) - 1
    return f" (so have {many} others)" if many > 1 else " (so has one other)" if many else ""


def _named(mark: Mark, titles: dict[str, str]) -> str:
    parts = (in_words(mark.name), mark.section, titles.get(mark.column, mark.column), mark.at)
    return f"{', '.join(part for part in parts if part)}, {shown(mark.value, mark.unit)}"
