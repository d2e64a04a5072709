"""Points with whiskers in rows: a row per tested model or judge, a marker per series."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..paper.table import Unit
from .drawing import grid, points, room_for, series_legend, style_of, value_axis
from .marks import Mark, distinct
from .names import labels
from .palette import RULE
from .seam import ONE_COLUMN, Panel, Sheet, new_sheet

NAME_ROOM = 92.0
_LEAST, _PER_SERIES, _REST = 0.19, 0.1, 0.65  # inches


def dot_sheet(
    marks: Sequence[Mark],
    *,
    names: Sequence[str],
    series: Callable[[Mark], str],
    titles: Mapping[str, str],
    axis: str,
    whole: bool = True,
) -> Sheet:
    """Draws the rows from top to bottom, and in each row its series likewise.

    Args:
        marks: What is drawn.
        names: The rows, each once.
        series: Which series a mark belongs to.
        titles: What a series is called, in the order of the series.
        axis: Label of the axis of values.
        whole: Whether the axis of rates goes from 0 to 100 % whatever they are.
    """
    keys = [key for key in titles if key in {series(mark) for mark in marks}]
    height = len(names) * max(_LEAST, _PER_SERIES * len(keys) + 0.06) + _REST
    sheet = new_sheet(ONE_COLUMN, height + 0.14 * (len(keys) > 3))
    panel = sheet.subplots()
    for place, key in enumerate(keys):
        shift = _shift(place, len(keys))
        own = [(names.index(m.name) + shift, m) for m in marks if series(m) == key]
        points(panel, own, style_of(place), flat=True)
    _rows(panel, names)
    _values(panel, room_for(marks, whole=whole), marks[0].unit, axis)
    series_legend(sheet, [titles[key] for key in keys])
    return sheet


def _shift(place: int, many: int) -> float:
    return (place - (many - 1) / 2) * 0.8 / max(many, 3)


def _rows(panel: Panel, names: Sequence[str]) -> None:
    short = labels(distinct(names), NAME_ROOM)
    panel.set_yticks(range(len(names)), [short[name] for name in names])
    panel.set_ylim(len(names) - 0.5, -0.5)
    panel.tick_params(axis="y", length=0)
    panel.hlines(
        [row + 0.5 for row in range(len(names) - 1)],
        0,
        1,
        transform=panel.get_yaxis_transform(),
        colors=RULE,
        linewidth=0.5,
        zorder=0,
    )


def _values(panel: Panel, ends: tuple[float, float], unit: Unit, axis: str) -> None:
    value_axis(panel.xaxis, unit, ends)
    panel.set_xlim(*ends)
    panel.set_xlabel(axis)
    grid(panel, "x")
