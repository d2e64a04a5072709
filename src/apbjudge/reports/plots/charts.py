"""The kinds of charts; names are rows from top to bottom, or panels in reading order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, Literal

import numpy as np

from ...statistics.estimates import Estimate
from .axes import (
    CONTEXT,
    FILLS,
    INK,
    MOST_IN_COLUMN,
    MUTED,
    NAME_LETTERS,
    ONE_COLUMN,
    RULE,
    TITLE_LETTERS,
    TWO_COLUMNS,
    WHITE,
    Axes,
    MplFigure,
    heat_colours,
    ink_on,
    legend,
    name_rows,
    new_figure,
    points,
    series_legend,
    series_style,
    small_multiples,
    value_axis,
    value_limits,
    whiskers,
)
from .marks import Mark, distinct, natural, percent
from .text import drawable, labels

Marks = Sequence[Mark]
Names = Sequence[str]

# Rows of points and bars -------------------------------------------------------------------------

_FULL = 0.99  # shares may be rounded
_LEAST_TEXT = 0.09  # a narrower part of a bar has no room for its number
_UNDER_TEXT = {"facecolor": WHITE, "edgecolor": "none", "pad": 0.5}


def dot_chart(
    marks: Marks,
    names: Names,
    *,
    series: Literal["section", "column"],
    titles: Mapping[str, str] | None = None,
    axis: str,
    full_range: bool = True,
) -> MplFigure:
    """Points with whiskers: a row per name, and in each row a point per series.

    Args:
        marks: The values.
        names: The rows, each once.
        series: Field of a mark that is its series.
        titles: Titles of the series, in their order; None for the names of the series.
        axis: Label of the axis of values.
        full_range: True if the axis of rates always goes from 0 to 100 %.
    """
    series_of = attrgetter(series)
    own = distinct(map(series_of, marks))
    keys = own if titles is None else [key for key in titles if key in own]
    height = len(names) * max(0.19, 0.1 * len(keys) + 0.06) + 0.51
    figure = new_figure(ONE_COLUMN, height + 0.14 * math.ceil(len(keys) / 2))
    axes = figure.subplots()
    for index, key in enumerate(keys):
        shift = (index - (len(keys) - 1) / 2) * 0.8 / max(len(keys), 3)
        placed = [(names.index(m.name) + shift, m) for m in marks if series_of(m) == key]
        points(axes, placed, series_style(index), flat=True)
    name_rows(axes, labels(names, NAME_LETTERS))
    between = [row + 0.5 for row in range(len(names) - 1)]
    across = axes.get_yaxis_transform()
    axes.hlines(between, 0, 1, transform=across, colors=RULE, linewidth=0.5, zorder=0)
    value_axis(axes, "x", marks[0].unit, value_limits(marks, full_range=full_range), axis)
    series_legend(figure, [(titles or {}).get(key, key) for key in keys])
    return figure


def bar_chart(
    marks: Marks, names: Names, *, titles: Mapping[str, str], counted: str = "cases"
) -> MplFigure:
    """A stacked bar per tested model, whose parts are shares of its rows by column."""
    from matplotlib.patches import Patch

    columns = {mark.column for mark in marks}
    fills = dict(zip((key for key in titles if key in columns), FILLS, strict=False))
    figure = new_figure(ONE_COLUMN, len(names) * 0.22 + 0.5 + 0.14 * math.ceil(len(fills) / 2))
    axes = figure.subplots()
    lefts = dict.fromkeys(names, 0.0)
    for key, fill in fills.items():
        for mark in marks:
            if mark.column == key and mark.value > 0:
                row = names.index(mark.name)
                look = {"color": fill.colour, "hatch": fill.hatch}
                look |= {"edgecolor": INK, "linewidth": 0.5, "height": 0.74}
                bar = axes.barh(row, mark.value, left=lefts[mark.name], **look)
                text = f"{100 * mark.value:.0f}" if mark.value >= _LEAST_TEXT else ""
                box = _UNDER_TEXT if fill.hatch else None
                axes.bar_label(bar, [text], label_type="center", color=fill.ink, bbox=box)
                lefts[mark.name] += mark.value
    name_rows(axes, labels(names, NAME_LETTERS))
    undecided = "; open end: undecided" if min(lefts.values()) < _FULL else ""
    value_axis(axes, "x", "percent", (0.0, 1.0), grid=False)
    figure.supxlabel(f"Share of {counted}, %{undecided}", fontsize="medium")
    patches = [
        Patch(facecolor=fill.colour, hatch=fill.hatch, edgecolor=INK, linewidth=0.5)
        for fill in fills.values()
    ]
    legend(figure, patches, [titles[key] for key in fills])
    return figure


def count_chart(marks: Marks, _: Names, *, across: str, up: str) -> MplFigure:
    """Bars of counts over steps or levels, each with its count, and a line at their mean."""
    sections = distinct(mark.section for mark in marks)
    figure = new_figure(ONE_COLUMN, len(sections) * 1.5 + 0.2)
    all_axes = figure.subplots(len(sections), 1, squeeze=False)[:, 0]
    for axes, section in zip(all_axes, sections, strict=True):
        own = {mark.at: mark.value for mark in marks if mark.section == section}
        places = natural(own)
        mean = sum(own.values()) / len(own)
        counts = [own[place] for place in places]
        look = {"color": FILLS[1].colour, "edgecolor": INK, "linewidth": 0.5}
        bars = axes.bar(range(len(places)), counts, width=0.62, **look)
        axes.bar_label(bars, fmt="{:.0f}", padding=2, zorder=4, bbox=_UNDER_TEXT)
        axes.axhline(mean, color=FILLS[2].colour, linestyle=(0, (4, 1.5)), linewidth=1.1)
        beside = {"xycoords": ("axes fraction", "data"), "va": "center", "annotation_clip": False}
        axes.annotate(f"mean {mean:.1f}", (1.02, mean), color=INK, **beside)
        axes.set_xticks(range(len(places)), list(map(drawable, places)))
        value_axis(axes, "y", "count", (0.0, 1.18 * max(1.0, *own.values())), up, most=4)
        axes.set_title(section if len(sections) > 1 else "", pad=3)
    all_axes[-1].set_xlabel(across)
    return figure


# Rates of errors ---------------------------------------------------------------------------------


def heat_map(marks: Marks, names: Names) -> MplFigure:
    """Rates of errors: a row per tested model, a column per code, axes per protocol.

    The axes are below each other, or side by side for many tested models.
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


def _heat_cells(axes: Axes, marks: Marks, names: Names, codes: Sequence[str], top: float) -> None:
    colours = heat_colours()
    rates = np.full((len(names), len(codes)), np.nan)
    for mark in marks:
        y, x = names.index(mark.name), codes.index(mark.column)
        rates[y, x] = mark.value
        ink = ink_on(colours(mark.value / top))
        axes.text(x, y, percent(mark.value), ha="center", va="center_baseline", color=ink)
    edges = [np.arange(size + 1) - 0.5 for size in (len(codes), len(names))]
    look = {"cmap": colours, "vmin": 0, "vmax": top, "edgecolors": WHITE, "linewidth": 0.8}
    axes.pcolormesh(*edges, np.ma.masked_invalid(rates), **look)
    axes.set_xticks(range(len(codes)), codes)
    name_rows(axes, labels(names, NAME_LETTERS))
    axes.spines[:].set_visible(False)


def error_profiles(marks: Marks, names: Names) -> MplFigure:
    """Rates of errors with intervals, on small axes for each tested model.

    E2-H and E2-S share a place, since no protocol among the marks has both.
    """
    sections = distinct(mark.section for mark in marks)
    codes = sorted({mark.column[:2] for mark in marks})
    figure, all_axes = small_multiples(len(names))
    short = labels(names, TITLE_LETTERS)
    ends = value_limits(marks)
    for axes, name in zip(all_axes, names, strict=True):
        for index, section in enumerate(sections):
            shift = (index - (len(sections) - 1) / 2) * 0.3
            own = [m for m in marks if (m.name, m.section) == (name, section)]
            if own:
                placed = [(codes.index(m.column[:2]) + shift, m) for m in own]
                points(axes, placed, series_style(index), flat=False)
        axes.set_xticks(range(len(codes)), codes)
        axes.set_xlim(-0.5, len(codes) - 0.5)
        value_axis(axes, "y", "percent", ends)
        axes.tick_params(axis="x", length=0)
        axes.set_title(short[name], pad=3)
    figure.supylabel("Plans with the error, %", fontsize="medium")
    series_legend(figure, sections)
    return figure


# Curves ------------------------------------------------------------------------------------------

_MOST_TOGETHER = 5  # lines on one axes; whiskers of more would overlap


def curve_chart(
    marks: Marks, names: Names, *, across: str, up: str, from_zero: bool = False
) -> MplFigure:
    """Lines over steps, stages or levels, with a whisker at each point.

    Up to five tested models share the axes of a protocol. With more, each has its own axes, with
    the others in a pale colour behind it if there is room.

    Args:
        marks: The values, all of one unit.
        names: The tested models, in order.
        across: Label of the horizontal axis.
        up: Label of the axis of values.
        from_zero: True if the axis of values starts at 0.
    """
    sections = distinct(mark.section for mark in marks)
    places = natural(mark.at for mark in marks)
    limits = value_limits(marks, least=0.0 if from_zero else math.inf)
    together = len(names) <= _MOST_TOGETHER
    if together:
        figure = new_figure(ONE_COLUMN, len(sections) * 1.5 + 0.35 + 0.08 * len(names))
        all_axes = figure.subplots(len(sections), 1, sharex=True, squeeze=False)[:, 0]
        panels, series = sections, names
        titles = (
            dict.fromkeys(sections, "")
            if len(sections) == 1
            else dict(zip(sections, sections, strict=True))
        )
    else:
        figure, all_axes = small_multiples(len(names))
        panels, series, titles = names, sections, labels(names, TITLE_LETTERS)
    panel_of, series_of = map(attrgetter, ("section", "name") if together else ("name", "section"))
    for axes, panel in zip(all_axes, panels, strict=True):
        for other in names if len(sections) == 1 and not together else ():
            pale = _values([mark for mark in marks if mark.name == other], places)
            axes.plot(range(len(pale)), pale, color=CONTEXT, linewidth=0.6, zorder=1)
        own = [mark for mark in marks if panel_of(mark) == panel]
        _lines(axes, [[mark for mark in own if series_of(mark) == one] for one in series], places)
        axes.set_xticks(range(len(places)), list(map(drawable, places)))
        axes.set_xlim(-0.35, len(places) - 0.65)
        value_axis(axes, "y", "percent", limits)
        axes.set_title(titles[panel], pad=3)
    figure.supxlabel(across, fontsize="medium")
    figure.supylabel(up, fontsize="medium")
    shown = list(labels(names, NAME_LETTERS).values()) if together else sections
    series_legend(figure, shown, lines=True)
    return figure


def _lines(axes: Axes, by_series: Sequence[Marks], places: Sequence[str]) -> None:
    """A line per series, with gaps at missing values, shifted to keep whiskers apart."""
    many = len(by_series)
    for index, marks in enumerate(by_series):
        look, shift = series_style(index), (index - (many - 1) / 2) * min(0.08, 0.4 / many)
        if marks:
            placed = [(places.index(mark.at) + shift, mark) for mark in marks]
            whiskers(axes, placed, look.colour, flat=False)
            xs = [place + shift for place in range(len(places))]
            line = {"linestyle": look.dash, "linewidth": 1.1, "zorder": 3}
            axes.plot(xs, _values(marks, places), **line, **look.marker_settings)


def _values(marks: Marks, places: Sequence[str]) -> list[float]:
    """The values of a line, by place; NaN without one."""
    value_at = {mark.at: mark.value for mark in marks}
    return [value_at.get(place, math.nan) for place in places]


# Costs -------------------------------------------------------------------------------------------

_IN_LINE = 16  # numbers that fit in one line above the axes


def cost_chart(marks: Marks, _: Names) -> MplFigure:
    """A point per tested model, with a line to its number above; names are below.

    Args:
        marks: Cost of a plan and share of correct plans of each tested model, in turn.
    """
    from matplotlib.lines import Line2D

    costs, correct = marks[::2], marks[1::2]
    figure = new_figure(ONE_COLUMN, 2.6 + 0.15 * math.ceil(len(costs) / 2))
    axes = figure.subplots()
    lines = math.ceil(len(costs) / _IN_LINE)
    for at, (x, y) in enumerate(zip(costs, correct, strict=True)):
        whiskers(axes, [(y.value, x)], CONTEXT, flat=True)
        whiskers(axes, [(x.value, y)], CONTEXT, flat=False)
        axes.plot([x.value], [y.value], marker="o", markersize=3.5, color=INK, zorder=3)
        axes.annotate(
            str(at + 1),
            xy=(x.value, y.value),
            xytext=((at + 0.5) / len(costs), 1.03 + 0.07 * (at % lines)),
            textcoords="axes fraction",
            ha="center",
            arrowprops={"arrowstyle": "-", "linestyle": ":", "color": MUTED, "linewidth": 0.6},
        )
    value_axis(axes, "x", "cost", value_limits(costs), "Mean cost of a plan")
    value_axis(axes, "y", "percent", value_limits(correct), "Correct plans, %")
    names = labels([mark.name for mark in costs], NAME_LETTERS - 4)
    numbered = [f"{number}  {name}" for number, name in enumerate(names.values(), start=1)]
    blank = [Line2D([], [], linestyle="none")] * len(numbered)
    look: dict[str, Any] = {"ncols": 2, "handlelength": 0, "columnspacing": 1.0, "borderpad": 0.1}
    figure.legend(blank, numbered, loc="outside lower center", **look)
    return figure


# Certainty ---------------------------------------------------------------------------------------


def certainty_chart(certainty: Sequence[float], agreement: Sequence[Estimate]) -> MplFigure:
    """Agreement against mean certainty (0.5 to 1), and below it the number of items per point."""
    from matplotlib.lines import Line2D

    figure = new_figure(ONE_COLUMN, 3.1)
    axes, below = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    diagonal: dict[str, Any] = {"color": MUTED, "linewidth": 0.8, "linestyle": (0, (4, 2))}
    axes.plot([0.5, 1], [0.5, 1], zorder=1, **diagonal)
    _agreement(axes, certainty, agreement, joined=False, least=0.5)
    counts = [estimate.n_items for estimate in agreement]
    below.bar(certainty, counts, width=0.008, color=MUTED)
    value_axis(below, "y", "count", (0, 1.1 * max(counts)), "Items", most=2, grid=False)
    replies = "Replies with the more frequent verdict, %"
    value_axis(below, "x", "percent", (0.485, 1.015), replies, grid=False)
    figure.align_ylabels()
    legend(figure, [Line2D([], [], **diagonal)], ["as often right as sure"])
    return figure


def surest_chart(shares: Sequence[float], agreement: Sequence[Estimate]) -> MplFigure:
    """Agreement on the surest items against their share of all items."""
    figure = new_figure(ONE_COLUMN, 2.2)
    axes = figure.subplots()
    _agreement(axes, shares, agreement, joined=True, least=1.0)
    value_axis(axes, "x", "percent", (-0.02, 1.03), "Items, the surest first, %", grid=False)
    return figure


def _agreement(
    axes: Axes, xs: Sequence[float], agreement: Sequence[Estimate], *, joined: bool, least: float
) -> None:
    """Draws points with whiskers, and the axis of values from ``least`` or a lower value."""
    placed = list(zip(xs, agreement, strict=True))
    points(axes, placed, series_style(0), flat=False, joined=joined)
    lows = [e.value or 0.0 if e.low is None else e.low for e in agreement]
    start = int(10 * min(least, *lows)) / 10
    value_axis(axes, "y", "percent", (start - 0.02, 1.02), "Agrees with humans, %")
