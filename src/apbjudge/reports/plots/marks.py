"""The values that a figure draws, taken from a table's cells and not computed again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from ...statistics.metric import Unit
from ...statistics.proportions import counted
from ..paper.table import PaperTable
from .text import in_words

Frame = Any
"""A ``pandas.DataFrame``, whose types pyright knows in part."""

_STAGES = ("early", "middle", "late")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One drawn value: a line of the figure's data.

    Attributes:
        judge: The judge; empty in a comparison of judges.
        name: Full name of the tested model, or of the judge.
        section: Section of the table's column.
        column: Key of the table's column.
        at: Place on an axis, such as ``2`` steps; empty without such an axis.
        value: The value; a rate is from 0 to 1. ``low`` and ``high`` are None without an interval.
        n: Number of rows behind it, of ``n_clusters`` cases.
        bound: As in ``Estimate``.
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
    bound: str = ""

    @property
    def ends(self) -> tuple[float, float]:
        """The interval; the value twice if there is none."""
        if self.low is None or self.high is None:
            return self.value, self.value
        return self.low, self.high


def table_marks(table: PaperTable, judge: str, columns: str) -> list[Mark]:
    """The values of one judge, by row, in the columns whose keys match a regular expression.

    The last head of a row is its place; if there are three heads, the middle one is the section.
    """
    return [
        Mark(
            judge=judge,
            name=line.heads[0],
            section=line.heads[1] if len(line.heads) > 2 else section,
            column=column,
            at=line.heads[-1] if len(line.heads) > 1 else "",
            unit=cell.unit,
            value=cell.estimate.value,
            low=cell.estimate.low,
            high=cell.estimate.high,
            level=cell.estimate.level,
            n=cell.estimate.n_items,
            n_clusters=cell.estimate.n_clusters,
            bound=cell.estimate.bound,
        )
        for line in table.lines
        if line.group == judge
        for (section, column), cell in line.cells.items()
        if re.fullmatch(columns, column) and cell.estimate.value is not None
    ]


def frame(rows: Sequence[Mapping[str, Any]]) -> Frame:
    """A frame with the columns of its rows; lone surrogates are escaped."""
    import pandas as pd

    def escaped(value: Any) -> Any:  # neither pandas' strings nor files hold lone surrogates
        return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value

    return pd.DataFrame([{name: escaped(value) for name, value in row.items()} for row in rows])


def as_share(mark: Mark) -> Mark:
    """A count of rows as a share of them; with an interval if no two rows belong to one case."""
    share = counted(round(mark.value), mark.n, level=mark.level)
    independent = mark.n == mark.n_clusters
    low, high = (share.low, share.high) if independent else (None, None)
    return replace(mark, unit="percent", value=share.value or 0.0, low=low, high=high)


def summed(marks: Sequence[Mark]) -> list[Mark]:
    """Sums of counts over tested models, by section and place."""
    groups: dict[tuple[str, str], list[Mark]] = {}
    for mark in marks:
        groups.setdefault((mark.section, mark.at), []).append(mark)
    several = len({mark.name for mark in marks}) > 1
    return [
        replace(
            group[0],
            name="all tested models" if several else group[0].name,
            value=sum(mark.value for mark in group),
            low=None,
            high=None,
            n=sum(mark.n for mark in group),
            n_clusters=max(mark.n_clusters for mark in group),
        )
        for group in groups.values()
    ]


def distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """The different texts, in order of first occurrence."""
    return tuple(dict.fromkeys(texts))


def natural(places: Iterable[str]) -> tuple[str, ...]:
    """Places of an axis, each once, in their natural order: numbers, or stages of a run."""
    own = distinct(places)
    numbers = [re.match(r"\d{1,18}(?!\d)", place) for place in own]
    ranks = [int(number[0]) for number in numbers if number]
    if len(ranks) < len(own):
        stages = [place.lower() for place in own]
        ranks = [_STAGES.index(one) if one in _STAGES else len(_STAGES) for one in stages]
    return tuple(place for _, place in sorted(zip(ranks, own, strict=True), key=itemgetter(0)))


def by_value(marks: Sequence[Mark]) -> tuple[str, ...]:
    """Names in descending order of their values.

    The first section decides for all names that have it; those without it follow.
    """
    sections = distinct(mark.section + mark.column for mark in marks)
    values: dict[str, dict[str, float]] = {}
    for mark in marks:
        values.setdefault(mark.name, {})[mark.section + mark.column] = mark.value
    return tuple(
        sorted(values, key=lambda name: [-values[name].get(key, -1.0) for key in sections])
    )


def percent(share: float) -> str:
    """A rate times 100 with two digits; three only for 100."""
    value = 100 * share
    if value == 0:
        return "0"
    return f"{value:.1f}" if abs(value) < 9.95 else f"{value:.0f}"


def extremes(marks: Sequence[Mark], titles: Mapping[str, str] | None = None) -> str:
    """A sentence that names the highest and the lowest of some values of one unit.

    Args:
        marks: At least one.
        titles: Titles of columns whose keys are not clear enough.
    """
    low = min(marks, key=lambda mark: mark.value)
    high = max(marks, key=lambda mark: mark.value)
    if low.value == high.value:
        return f"All {len(marks)} values are {_with_unit(high)}."

    def described(end: Mark) -> str:
        column = (titles or {}).get(end.column, end.column)
        parts = filter(None, (in_words(end.name), end.section, column, end.at))
        others = sum(mark.value == end.value for mark in marks) - 1
        equal = f" (and {others} other{'s' if others > 1 else ''})" if others else ""
        return f"{', '.join(parts)}, {_with_unit(end)}{equal}"

    return f"Highest: {described(high)}; lowest: {described(low)}."


def _with_unit(mark: Mark) -> str:
    if mark.unit in {"percent", "points"}:
        return f"{percent(mark.value)} %"
    return f"{mark.value:.0f}" if mark.unit == "count" else f"{mark.value:.2f}"
