"""Parts that several figures share: axes in percent, points with whiskers, legends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise

from ..paper.table import Unit
from .fonts import text_width
from .marks import Mark
from .palette import INK, RULE, STYLES, Fill, Style
from .seam import Panel, Sheet, area_handle, line_handle, ticks

MARKER = 4.0
WHISKER = 0.8
_LEGEND_PAD = 25.5  # points that a legend's entry takes beside its text


def style_of(place: int) -> Style:
    """The style of a series; there are as many as may share a panel."""
    return STYLES[place % len(STYLES)]


def points(panel: Panel, found: Sequence[tuple[float, Mark]], look: Style, *, flat: bool) -> None:
    """Points with their whiskers and no line between them.

    Args:
        panel: Where to.
        found: Each mark with its place on the other axis.
        look: The series' style.
        flat: Whether values run from left to right.
    """
    places, values = [place for place, _ in found], [mark.value for _, mark in found]
    whiskers(panel, found, look, flat=flat)
    ends = (values, places) if flat else (places, values)
    panel.plot(*ends, linestyle="none", zorder=3, **marker(look))


def whiskers(panel: Panel, found: Sequence[tuple[float, Mark]], look: Style, *, flat: bool) -> None:
    """The intervals alone; a mark without one has none."""
    held = [(place, mark) for place, mark in found if mark.low is not None]
    if held:
        draw = panel.hlines if flat else panel.vlines
        lows, highs = zip(*(mark.ends for _, mark in held), strict=True)
        draw([p for p, _ in held], lows, highs, colors=look.colour, linewidth=WHISKER, zorder=2)


def marker(look: Style) -> dict[str, object]:
    """Settings of a series' marker."""
    return {
        "marker": look.marker,
        "markersize": MARKER,
        "markerfacecolor": look.face,
        "markeredgecolor": look.colour,
        "markeredgewidth": 0.9,
        "color": look.colour,
    }


def value_axis(axis: Panel, unit: Unit, ends: tuple[float, float], *, most: int = 5) -> None:
    """Ticks of an axis of values; rates from 0 to 1 are written in percent.

    Args:
        axis: ``panel.xaxis`` or ``panel.yaxis``.
        unit: Unit of the values.
        ends: Of the axis.
        most: Spaces between ticks at most.
    """
    digits = 0 if ends[1] - ends[0] >= 3 else 1

    def written(value: float) -> str:
        return f"{100 * value:.0f}" if unit == "percent" else f"{value:.{digits}f}"

    ticks(axis, written, most=most, whole=unit == "count")


def room_for(
    marks: Sequence[Mark], *, whole: bool, least: float | None = None
) -> tuple[float, float]:
    """Where an axis of values starts and ends.

    Args:
        marks: What must have its place.
        whole: Whether rates have an axis from 0 to 100 % whatever they are.
        least: What else must have its place; None for nothing.
    """
    low = min(mark.ends[0] for mark in marks)
    low = low if least is None else min(low, least)
    high = max(mark.ends[1] for mark in marks)
    if marks[0].unit == "percent":
        tight = math.floor(10 * low + 1e-9) / 10, math.ceil(10 * high - 1e-9) / 10
        low, high = (0.0, 1.0) if whole else (tight[0], max(tight[1], tight[0] + 0.1))
    elif marks[0].unit == "count":
        low, high = 0.0, max(1.0, high)
    pad = 0.03 * ((high - low) or 1.0)
    return low - pad, high + pad


def grid(panel: Panel, axis: str) -> None:
    """Thin lines to read values by."""
    panel.grid(visible=True, axis=axis, color=RULE, linewidth=0.5, zorder=0)
    panel.set_axisbelow(True)


def series_legend(sheet: Sheet, titles: Sequence[str], *, lines: bool = False) -> None:
    """A legend of series above the panels; none for a single series.

    Args:
        sheet: Where to.
        titles: One per series, in order.
        lines: Whether points are joined by lines.
    """
    looks = [style_of(place) for place in range(len(titles))]
    handles = [
        line_handle(linestyle=look.dash if lines else "none", linewidth=1.1, **marker(look))
        for look in looks
    ]
    if len(titles) > 1:
        legend(sheet, handles, titles)


def fill_legend(sheet: Sheet, fills: Sequence[Fill], titles: Sequence[str]) -> None:
    """A legend of areas above the panels."""
    handles = [
        area_handle(facecolor=fill.colour, hatch=fill.hatch, edgecolor=INK, linewidth=0.5)
        for fill in fills
    ]
    legend(sheet, handles, titles)


def legend(sheet: Sheet, handles: Sequence[object], titles: Sequence[str]) -> None:
    """A legend above the panels, in as few lines as there is room for."""
    room = 72 * float(sheet.get_figwidth()) - 12
    sheet.legend(
        handles,
        titles,
        loc="outside upper center",
        ncols=legend_columns([text_width(title) + _LEGEND_PAD for title in titles], room),
        handlelength=2.2,
        handletextpad=0.4,
        columnspacing=1.0,
        borderpad=0.1,
    )


def legend_columns(widths: Sequence[float], room: float) -> int:
    """How many columns of a legend fit; entries go down each column before the next.

    Args:
        widths: Of the entries, in order.
        room: Width that they may take together.
    """
    for many in range(len(widths), 1, -1):
        deep, longer = divmod(len(widths), many)  # the first columns hold one more
        ends = list(accumulate(deep + (column < longer) for column in range(many)))
        columns = [widths[start:end] for start, end in pairwise([0, *ends])]
        if sum(map(max, columns)) <= room:
            return many
    return 1
