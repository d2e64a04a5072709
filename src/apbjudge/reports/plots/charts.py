"""Charts with a row, a bar or axes of its own per tested model: points, bars, heat map, profiles.

Each takes the marks and the names of its rows, from top to bottom or in the order of reading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Literal

import numpy as np

from .marks import Mark, distinct, percent
from .matplotlib_backend import (
    MOST_IN_COLUMN,
    NAME_ROOM,
    ONE_COLUMN,
    TITLE_ROOM,
    TWO_COLUMNS,
    Axes,
    MplFigure,
    fill_legend,
    grid,
    name_rows,
    new_figure,
    points,
    series_legend,
    small_multiples,
    value_axis,
    value_limits,
)
from .palette import FILLS, INK, RULE, Fill, heat_colours, ink_on, series_style
from .text import labels

_FULL = 0.99  # shares may come rounded
_LEAST_TEXT = 0.09  # a narrower part of a bar has no room for its number


def dot_chart(
    marks: Sequence[Mark],
    names: Sequence[str],
    *,
    series: Literal["section", "column"],
    titles: Mapping[str, str] | None = None,
    axis: str,
    whole: bool = True,
) -> MplFigure:
    """Points with whiskers: a row per name, and in each row a point per series.

    Args:
        marks: The values.
        names: The rows, each once.
        series: Field of a mark that is its series.
        titles: Titles of the series, in their order; None for the series' own names.
        axis: Label of the axis of values.
        whole: Whether the axis of rates goes from 0 to 100 % whatever they are.
    """
    series_of = attrgetter(series)
    own = distinct(map(series_of, marks))
    keys = own if titles is None else [key for key in titles if key in own]
    height = len(names) * max(0.19, 0.1 * len(keys) + 0.06) + 0.65
    figure = new_figure(ONE_COLUMN, height + 0.14 * (len(keys) > 3))
    axes = figure.subplots()
    for index, key in enumerate(keys):
        shift = (index - (len(keys) - 1) / 2) * 0.8 / max(len(keys), 3)
        placed = [(names.index(m.name) + shift, m) for m in marks if series_of(m) == key]
        points(axes, placed, series_style(index), flat=True)
    name_rows(axes, labels(names, NAME_ROOM))
    between = [row + 0.5 for row in range(len(names) - 1)]
    across = axes.get_yaxis_transform()
    axes.hlines(between, 0, 1, transform=across, colors=RULE, linewidth=0.5, zorder=0)
    ends = value_limits(marks, whole=whole)
    value_axis(axes.xaxis, marks[0].unit, ends)
    axes.set_xlim(*ends)
    axes.set_xlabel(axis)
    grid(axes, "x")
    series_legend(figure, [(titles or {}).get(key, key) for key in keys])
    return figure


def bar_chart(
    marks: Sequence[Mark], names: Sequence[str], *, titles: Mapping[str, str]
) -> MplFigure:
    """A stacked bar per tested model, whose parts are shares of its rows by column.

    Args:
        marks: Shares.
        names: The tested models.
        titles: Titles of the columns, in order.
    """
    columns = {mark.column for mark in marks}
    fills = dict(zip((key for key in titles if key in columns), FILLS, strict=False))
    figure = new_figure(ONE_COLUMN, len(names) * 0.22 + 0.75)
    axes = figure.subplots()
    lefts = dict.fromkeys(names, 0.0)
    for key, fill in fills.items():
        for mark in marks:
            if mark.column == key and mark.value > 0:
                _bar_part(axes, lefts[mark.name], names.index(mark.name), mark.value, fill)
                lefts[mark.name] += mark.value
    name_rows(axes, labels(names, NAME_ROOM))
    value_axis(axes.xaxis, "percent", (0.0, 1.0))
    axes.set_xlim(0, 1)
    undecided = "; open end: undecided" if min(lefts.values()) < _FULL else ""
    axes.set_xlabel(f"Share of cases, %{undecided}")
    fill_legend(figure, list(fills.values()), [titles[key] for key in fills])
    return figure


def _bar_part(axes: Axes, left: float, row: int, value: float, fill: Fill) -> None:
    look = {"color": fill.colour, "hatch": fill.hatch, "edgecolor": INK, "linewidth": 0.5}
    axes.barh(row, value, left=left, height=0.74, **look)
    if value >= _LEAST_TEXT:
        axes.text(
            left + value / 2,
            row,
            f"{100 * value:.0f}",
            ha="center",
            va="center_baseline",
            color=fill.ink,
            bbox={"facecolor": "#ffffff", "edgecolor": "none", "pad": 0.6} if fill.hatch else None,
        )


def heat_map(marks: Sequence[Mark], names: Sequence[str]) -> MplFigure:
    """Rates of errors: a row per tested model, a column per code, axes per protocol.

    The axes are below each other, or side by side where there are many tested models.
    """
    sections = distinct(mark.section for mark in marks)
    codes = [sorted({mark.column for mark in marks if mark.section == s}) for s in sections]
    beside = len(names) > MOST_IN_COLUMN and len(sections) > 1
    rows = 1 if beside else len(sections)
    width = TWO_COLUMNS if beside else ONE_COLUMN
    figure = new_figure(width, rows * (len(names) * 0.165 + 0.36) + 0.15)
    ratios = [len(own) for own in codes] if beside else [1]
    all_axes = figure.subplots(rows, len(ratios), squeeze=False, width_ratios=ratios).flatten()
    top = max(0.1, *(mark.value for mark in marks))
    for index, (section, axes) in enumerate(zip(sections, all_axes, strict=True)):
        own = [mark for mark in marks if mark.section == section]
        _heat_cells(axes, own, names, codes[index], top)
        axes.set_title(section, pad=3)
        axes.tick_params(length=0, pad=2, labelleft=not beside or index == 0)
    figure.supxlabel("Plans with the error, %", fontsize="medium")
    return figure


def _heat_cells(
    axes: Axes, marks: Sequence[Mark], names: Sequence[str], codes: Sequence[str], top: float
) -> None:
    colours = heat_colours()
    rates = np.full((len(names), len(codes)), np.nan)
    for mark in marks:
        y, x = names.index(mark.name), codes.index(mark.column)
        rates[y, x] = mark.value
        ink = ink_on(colours(mark.value / top))
        axes.text(x, y, percent(mark.value), ha="center", va="center_baseline", color=ink)
    edges = [np.arange(size + 1) - 0.5 for size in (len(codes), len(names))]
    look = {"cmap": colours, "vmin": 0, "vmax": top, "edgecolors": "#ffffff", "linewidth": 0.8}
    axes.pcolormesh(*edges, np.ma.masked_invalid(rates), **look)
    axes.set_xticks(range(len(codes)), codes)
    name_rows(axes, labels(names, NAME_ROOM))
    axes.spines[:].set_visible(False)


def error_profiles(marks: Sequence[Mark], names: Sequence[str]) -> MplFigure:
    """Rates of errors with intervals, small axes per tested model.

    E2-H and E2-S have one place, since no protocol among the marks has both.
    """
    sections = distinct(mark.section for mark in marks)
    codes = sorted({mark.column[:2] for mark in marks})
    figure, all_axes = small_multiples(len(names))
    short = labels(names, TITLE_ROOM)
    ends = value_limits(marks)
    for axes, name in zip(all_axes, names, strict=True):
        for index, section in enumerate(sections):
            shift = (index - (len(sections) - 1) / 2) * 0.3
            own = [m for m in marks if (m.name, m.section) == (name, section)]
            placed = [(codes.index(m.column[:2]) + shift, m) for m in own]
            if placed:
                points(axes, placed, series_style(index), flat=False)
        axes.set_xticks(range(len(codes)), codes)
        axes.set_xlim(-0.5, len(codes) - 0.5)
        value_axis(axes.yaxis, "percent", ends)
        axes.set_ylim(*ends)
        axes.tick_params(axis="x", length=0)
        grid(axes, "y")
        axes.set_title(short[name], pad=3)
    figure.supylabel("Plans with the error, %", fontsize="medium")
    series_legend(figure, sections)
    return figure
