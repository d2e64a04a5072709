"""Stacked bars: what tested models do after a broken tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .dots import NAME_ROOM
from .drawing import fill_legend, value_axis
from .marks import Mark, distinct
from .names import labels
from .palette import FILLS, INK, Fill
from .seam import ONE_COLUMN, Panel, Sheet, new_sheet

_ROW, _REST = 0.22, 0.75  # inches
_FULL = 0.99  # shares may come rounded
_LEAST_TEXT = 0.09  # a narrower part has no room for its number


def bar_sheet(marks: Sequence[Mark], *, names: Sequence[str], titles: Mapping[str, str]) -> Sheet:
    """Draws a bar per tested model whose parts are shares of its rows.

    Args:
        marks: Shares.
        names: The tested models, from top to bottom.
        titles: What the parts are called, in order.
    """
    keys = [key for key in titles if key in {mark.column for mark in marks}]
    sheet = new_sheet(ONE_COLUMN, len(names) * _ROW + _REST)
    panel = sheet.subplots()
    fills = [FILLS[place % len(FILLS)] for place in range(len(keys))]
    for row, name in enumerate(names):
        own = {mark.column: mark.value for mark in marks if mark.name == name}
        _bar(panel, row, [(own.get(key, 0.0), fill) for key, fill in zip(keys, fills, strict=True)])
    short = labels(distinct(names), NAME_ROOM)
    panel.set_yticks(range(len(names)), [short[name] for name in names])
    panel.set_ylim(len(names) - 0.5, -0.5)
    panel.tick_params(axis="y", length=0)
    value_axis(panel.xaxis, "percent", (0.0, 1.0))
    panel.set_xlim(0, 1)
    panel.set_xlabel(_axis_label(marks, names))
    fill_legend(sheet, fills, [titles[key] for key in keys])
    return sheet


def _axis_label(marks: Sequence[Mark], names: Sequence[str]) -> str:
    """Says what an open end of a bar is: rows whose behaviour was left undecided."""
    sums = [sum(mark.value for mark in marks if mark.name == name) for name in names]
    rest = "; open end: undecided" if min(sums) < _FULL else ""
    return f"Share of cases, %{rest}"


def _bar(panel: Panel, row: int, parts: Sequence[tuple[float, Fill]]) -> None:
    left = 0.0
    for value, fill in parts:
        if value > 0:
            look = {"color": fill.colour, "hatch": fill.hatch, "edgecolor": INK}
            panel.barh(row, value, left=left, height=0.74, linewidth=0.5, **look)
        if value >= _LEAST_TEXT:
            _number(panel, left + value / 2, row, value, fill)
        left += value


def _number(panel: Panel, x: float, row: int, value: float, fill: Fill) -> None:
    behind = {"facecolor": "#ffffff", "edgecolor": "none", "pad": 0.6}
    panel.text(
        x,
        row,
        f"{100 * value:.0f}",
        ha="center",
        va="center_baseline",
        color=fill.ink,
        bbox=behind if fill.hatch else None,
    )
