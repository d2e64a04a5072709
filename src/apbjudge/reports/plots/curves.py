"""Charts over an axis of numbers or steps: curves, costs, a judge's certainty."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from ...statistics.estimates import Estimate
from .marks import Mark, distinct, natural
from .matplotlib_backend import (
    ONE_COLUMN,
    TITLE_ROOM,
    WHISKER,
    Axes,
    MplFigure,
    grid,
    legend,
    new_figure,
    series_legend,
    small_multiples,
    value_axis,
    value_limits,
    whiskers,
)
from .palette import CONTEXT, INK, MUTED, series_style
from .text import drawable, from_left, labels

_NAME_ROOM = 66.0  # points, right of the axes
_LINE_HEIGHT = 8.6  # points from one name to the next
_MOST_TOGETHER = 5  # lines of one axes; the whiskers of more would overlap


# Curves ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Curves:
    """The axes of a figure of curves, and the series that each may have."""

    series: Sequence[str]
    series_of: Callable[[Mark], str]
    places: Sequence[str]
    limits: tuple[float, float]

    def placed(self, marks: Sequence[Mark], series: str) -> list[tuple[float, Mark]]:
        """The points of a line with their places, shifted a little to keep whiskers apart."""
        many = len(self.series)
        shift = (self.series.index(series) - (many - 1) / 2) * min(0.08, 0.4 / many)
        own = [mark for mark in marks if self.series_of(mark) == series]
        return [(self.places.index(mark.at) + shift, mark) for mark in own]

    def draw(self, axes: Axes, marks: Sequence[Mark]) -> None:
        """All lines of some axes, each open where a place has no value."""
        for index, series in enumerate(self.series):
            placed, look = self.placed(marks, series), series_style(index)
            if placed:
                whiskers(axes, placed, look.colour, flat=False)
                shift = placed[0][0] - self.places.index(placed[0][1].at)
                xs = [place + shift for place in range(len(self.places))]
                ys = self.values([mark for _, mark in placed])
                line = {"linestyle": look.dash, "linewidth": 1.1, "zorder": 3}
                axes.plot(xs, ys, **line, **look.marker_settings)
        axes.set_xticks(range(len(self.places)), list(map(drawable, self.places)))
        axes.set_xlim(-0.35, len(self.places) - 0.65)
        value_axis(axes.yaxis, "percent", self.limits)
        axes.set_ylim(*self.limits)
        grid(axes, "y")

    def values(self, marks: Sequence[Mark]) -> list[float]:
        """The values of a line, place by place; NaN where there is none."""
        value_at = {mark.at: mark.value for mark in marks}
        return [value_at.get(place, math.nan) for place in self.places]


def curve_chart(
    marks: Sequence[Mark],
    names: Sequence[str],
    *,
    across: str,
    up: str,
    from_zero: bool = False,
) -> MplFigure:
    """Lines over steps, stages or levels, with a whisker at each point.

    Up to five tested models share the axes of a protocol, each with its name at its line. With
    more, each has axes of its own, the others pale behind it where there is room.

    Args:
        marks: The values, all of one unit.
        names: The tested models, in order.
        across: Label of the horizontal axis.
        up: Label of the axis of values.
        from_zero: Whether the axis of values starts at 0.
    """
    sections = distinct(mark.section for mark in marks)
    together = len(names) <= _MOST_TOGETHER
    curves = _Curves(
        series=names if together else sections,
        series_of=attrgetter("name" if together else "section"),
        places=natural(mark.at for mark in marks),
        limits=value_limits(marks, least=0.0 if from_zero else math.inf),
    )
    if together:
        return _axes_per_protocol(curves, marks, sections, across, up)
    figure, all_axes = small_multiples(len(names))
    short = labels(names, TITLE_ROOM)
    for axes, name in zip(all_axes, names, strict=True):
        if len(sections) == 1:
            for other in names:
                pale = curves.values([mark for mark in marks if mark.name == other])
                axes.plot(range(len(pale)), pale, color=CONTEXT, linewidth=0.6, zorder=1)
        curves.draw(axes, [mark for mark in marks if mark.name == name])
        axes.set_title(short[name], pad=3)
    figure.supxlabel(across, fontsize="medium")
    figure.supylabel(up, fontsize="medium")
    series_legend(figure, sections, lines=True)
    return figure


def _axes_per_protocol(
    curves: _Curves, marks: Sequence[Mark], sections: Sequence[str], across: str, up: str
) -> MplFigure:
    height = max(1.45, 0.125 * len(curves.series) + 0.3)
    figure = new_figure(ONE_COLUMN, len(sections) * (height + 0.2) + 0.2)
    all_axes = figure.subplots(len(sections), 1, sharex=True, squeeze=False)[:, 0]
    names: list[list[Any]] = []
    for axes, section in zip(all_axes, sections, strict=True):
        own = [mark for mark in marks if mark.section == section]
        curves.draw(axes, own)
        names.append(_line_names(axes, curves, own))
        axes.set_ylabel(up)
        axes.set_title(section if len(sections) > 1 else "", pad=3)
    all_axes[-1].set_xlabel(across)
    figure.draw_without_rendering()  # gives the axes their sizes
    for axes, notes in zip(all_axes, names, strict=True):
        low, high = axes.get_ylim()
        per_point = (high - low) / (axes.get_window_extent().height * 72 / figure.dpi)
        notes.sort(key=lambda note: note.xy[1])
        wanted = [float(note.xy[1]) for note in notes]
        places = spread(wanted, _LINE_HEIGHT * per_point, (low, high))
        for note, place in zip(notes, places, strict=True):
            note.set_position((1.05, place))
    return figure


def _line_names(axes: Axes, curves: _Curves, marks: Sequence[Mark]) -> list[Any]:
    """Names to the right of the axes, each tied to the last point of its line."""
    short = labels(curves.series, _NAME_ROOM)
    notes: list[Any] = []
    for index, series in enumerate(curves.series):
        if placed := curves.placed(marks, series):
            x, last = max(placed, key=lambda pair: pair[0])
            arrow = {"color": series_style(index).colour, "shrinkA": 0, "shrinkB": 2}
            note = axes.annotate(
                short[series],
                xy=(x, last.value),
                xytext=(1.05, last.value),
                textcoords=("axes fraction", "data"),
                va="center_baseline",
                color=INK,
                annotation_clip=False,
                arrowprops={"arrowstyle": "-", "linewidth": 0.5, "relpos": (0, 0.5), **arrow},
            )
            notes.append(note)
    return notes


def spread(wanted: Sequence[float], gap: float, ends: tuple[float, float]) -> list[float]:
    """Places near the wanted ones, at least a gap apart, within the ends where there is room.

    Args:
        wanted: In rising order.
        gap: Least distance.
        ends: Lowest and highest place.
    """
    places: list[float] = []
    for value in wanted:
        places.append(max(value, places[-1] + gap if places else value))
    ceiling = max(ends[1], ends[0] + gap * (len(places) - 1))
    for i in reversed(range(len(places))):
        places[i] = min(places[i], ceiling)
        ceiling = places[i] - gap
    return places


# Costs -------------------------------------------------------------------------------------------

Point = tuple[float, float]
_KEY_LINE = 0.14  # inches
_RING = 12.0  # points from the middle of a ring to what must stay free of it
_SHIFTS: tuple[Point, ...] = (
    (0.0, 0.0),
    *(
        (round(far * math.cos(turn * math.pi / 6), 3), round(far * math.sin(turn * math.pi / 6), 3))
        for far in (13.0, 20.0, 28.0)
        for turn in range(12)
    ),
)
"""Where a number may be beside its point, the nearest places first."""


def cost_chart(marks: Sequence[Mark], names: Sequence[str]) -> MplFigure:
    """A numbered point per tested model; the numbers are explained below.

    Args:
        marks: Cost of a plan and share of correct plans of each tested model, in turn.
        names: Not used: the numbers follow the marks.
    """
    costs, correct = marks[::2], marks[1::2]
    lines = math.ceil(len(costs) / 2)
    below = lines * _KEY_LINE + 0.05
    figure = new_figure(ONE_COLUMN, 2.3 + below)
    axes, key = figure.subplots(2, 1, height_ratios=[2.3, below])
    for x, y in zip(costs, correct, strict=True):
        whiskers(axes, [(y.value, x)], CONTEXT, flat=True)
        whiskers(axes, [(x.value, y)], CONTEXT, flat=False)
        axes.plot([x.value], [y.value], marker="o", markersize=3, color=INK, zorder=3)
    limits = [value_limits(own) for own in (costs, correct)]
    value_axis(axes.xaxis, "cost", limits[0])
    value_axis(axes.yaxis, "percent", limits[1])
    axes.set(xlim=limits[0], ylim=limits[1])
    axes.set(xlabel="Mean cost of a plan", ylabel="Correct plans, %")
    grid(axes, "both")
    short = labels([mark.name for mark in costs], 84.0)
    key.set_axis_off()
    key.set(xlim=(0, 2), ylim=(lines - 0.5, -0.5))
    for index, label in enumerate(short.values()):  # two columns, read downwards
        x, y = divmod(index, lines)
        key.text(x, y, from_left(f"{index + 1}  {label}"), va="center_baseline")
    figure.draw_without_rendering()  # gives the points their places
    _number(axes, [(x.value, y.value) for x, y in zip(costs, correct, strict=True)])
    return figure


def _number(axes: Axes, values: Sequence[Point]) -> None:
    """A ringed number at each point, or beside it where another one is in the way."""
    scale = 72 / axes.figure.dpi
    places = [(float(x) * scale, float(y) * scale) for x, y in axes.transData.transform(values)]
    for number, (at, shift) in enumerate(zip(values, shifts(places), strict=True), start=1):
        axes.annotate(
            str(number),
            xy=at,
            xytext=shift,
            textcoords="offset points",
            ha="center",
            va="center_baseline",
            zorder=4,
            bbox={"boxstyle": "circle,pad=0.15", "fc": "#ffffff", "ec": INK, "lw": 0.7},
            arrowprops={"arrowstyle": "-", "color": INK, "linewidth": 0.5} if any(shift) else None,
        )


def shifts(places: Sequence[Point]) -> list[Point]:
    """How far each number moves from its point, so that none hides another or its point.

    Args:
        places: The points, in points of print.
    """
    taken: list[Point] = []
    moves: list[Point] = []
    for own, (x, y) in enumerate(places):
        others = [*taken, *places[own + 1 :]]
        room = [min([_RING, *(math.dist((x + a, y + b), o) for o in others)]) for a, b in _SHIFTS]
        shift = _SHIFTS[room.index(max(room))]
        moves.append(shift)
        taken.append((x + shift[0], y + shift[1]))
        taken += [(x, y)] if any(shift) else []
    return moves


# Certainty ---------------------------------------------------------------------------------------


def certainty_chart(certainty: Sequence[float], agreement: Sequence[Estimate]) -> MplFigure:
    """Agreement against certainty, and below it how many items each point is of.

    Args:
        certainty: Mean certainty of each bin, 0.5 to 1.
        agreement: Agreement with humans in each bin.
    """
    from matplotlib.lines import Line2D

    figure = new_figure(ONE_COLUMN, 3.1)
    axes, below = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    diagonal: dict[str, Any] = {"color": MUTED, "linewidth": 0.8, "linestyle": (0, (4, 2))}
    axes.plot([0.5, 1], [0.5, 1], zorder=1, **diagonal)
    _agreement(axes, certainty, agreement, joined=False, least=0.5)
    counts = [estimate.n_items for estimate in agreement]
    below.bar(certainty, counts, width=0.008, color=MUTED)
    below.set(ylim=(0, 1.1 * max(counts)), ylabel="Items", xlim=(0.485, 1.015))
    value_axis(below.yaxis, "count", (0.0, float(max(counts))), most=2)
    value_axis(below.xaxis, "percent", (0.5, 1.0))
    below.set_xlabel("Replies with the more frequent verdict, %")
    figure.align_ylabels()
    legend(figure, [Line2D([], [], **diagonal)], ["as often right as sure"])
    return figure


def surest_chart(shares: Sequence[float], agreement: Sequence[Estimate]) -> MplFigure:
    """Agreement on the surest items against how many of all items they are.

    Args:
        shares: Share of items, rising to 1.
        agreement: Agreement with humans on them.
    """
    figure = new_figure(ONE_COLUMN, 2.2)
    axes = figure.subplots()
    _agreement(axes, shares, agreement, joined=True, least=1.0)
    axes.set(xlim=(-0.02, 1.03), xlabel="Items, the surest first, %")
    value_axis(axes.xaxis, "percent", (0.0, 1.0))
    return figure


def _agreement(
    axes: Axes, xs: Sequence[float], agreement: Sequence[Estimate], *, joined: bool, least: float
) -> None:
    """Points with whiskers, and the axis of values from ``least`` or what is lower."""
    look = series_style(0)
    ends = [(x, e.low, e.high) for x, e in zip(xs, agreement, strict=True) if e.low is not None]
    if ends:
        axes.vlines(*zip(*ends, strict=True), colors=look.colour, linewidth=WHISKER, zorder=2)
    values = [estimate.value for estimate in agreement]
    line = {"linestyle": look.dash if joined else "none", "linewidth": 1.1, "zorder": 3}
    axes.plot(xs, values, **line, **look.marker_settings)
    lows = [e.value or 0.0 if e.low is None else e.low for e in agreement]
    start = int(10 * min(least, *lows)) / 10
    value_axis(axes.yaxis, "percent", (start, 1.0))
    axes.set(ylim=(start - 0.02, 1.02), ylabel="Agrees with humans, %")
    grid(axes, "y")
