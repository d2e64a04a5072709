"""What plans cost against how many are correct."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from .drawing import WHISKER, grid, room_for, value_axis
from .marks import Mark
from .names import from_left, labels
from .palette import CONTEXT, INK
from .seam import ONE_COLUMN, Panel, Sheet, lay_out, new_sheet

Point = tuple[float, float]
_KEY_LINE = 0.14  # inches
_RING = 12.0  # points from the middle of a ring to what must stay free of it
_TRIES: tuple[Point, ...] = (
    (0.0, 0.0),
    *(
        (round(far * math.cos(turn * math.pi / 6), 3), round(far * math.sin(turn * math.pi / 6), 3))
        for far in (13.0, 20.0, 28.0)
        for turn in range(12)
    ),
)
"""Where a number may stand, the nearest places first."""


def cost_sheet(pairs: Mapping[str, tuple[Mark, Mark]]) -> Sheet:
    """Draws a numbered point per tested model; the numbers are explained below.

    Args:
        pairs: Cost and share of correct plans by tested model, in the order of the numbers.
    """
    lines = math.ceil(len(pairs) / 2)
    below = lines * _KEY_LINE + 0.05
    sheet = new_sheet(ONE_COLUMN, 2.3 + below)
    panel, key = sheet.subplots(2, 1, height_ratios=[2.3, below])
    for cost, correct in pairs.values():
        _point(panel, cost, correct)
    _axis(panel.xaxis, panel.set_xlim, [cost for cost, _ in pairs.values()])
    _axis(panel.yaxis, panel.set_ylim, [correct for _, correct in pairs.values()])
    panel.set_xlabel("Mean cost of a plan")
    panel.set_ylabel("Correct plans, %")
    grid(panel, "both")
    _explain(key, list(pairs), lines)
    lay_out(sheet)
    _numbers(panel, [(cost.value, correct.value) for cost, correct in pairs.values()])
    return sheet


def _axis(axis: Panel, limit: Panel, marks: Sequence[Mark]) -> None:
    ends = room_for(marks, whole=False)
    value_axis(axis, marks[0].unit, ends)
    limit(*ends)


def _point(panel: Panel, cost: Mark, correct: Mark) -> None:
    look = {"colors": CONTEXT, "linewidth": WHISKER, "zorder": 2}
    if cost.low is not None:
        panel.hlines([correct.value], *cost.ends, **look)
    if correct.low is not None:
        panel.vlines([cost.value], *correct.ends, **look)
    panel.plot([cost.value], [correct.value], marker="o", markersize=3, color=INK, zorder=3)


def _numbers(panel: Panel, values: Sequence[Point]) -> None:
    """A ringed number at each point, or beside it where another one is in the way."""
    scale = 72 / panel.figure.dpi
    places = [(float(x) * scale, float(y) * scale) for x, y in panel.transData.transform(values)]
    for number, (at, shift) in enumerate(zip(values, shifts(places), strict=True), start=1):
        panel.annotate(
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
    found: list[Point] = []
    for own, (x, y) in enumerate(places):
        others = [*taken, *(place for i, place in enumerate(places) if i > own)]
        room = [min([_RING, *(math.dist((x + a, y + b), o) for o in others)]) for a, b in _TRIES]
        shift = _TRIES[room.index(max(room))]
        found.append(shift)
        taken.append((x + shift[0], y + shift[1]))
        taken += [(x, y)] if any(shift) else []
    return found


def _explain(panel: Panel, names: Sequence[str], lines: int) -> None:
    """The key in two columns, read downwards."""
    short = labels(names, 84.0)
    panel.set_axis_off()
    panel.set_xlim(0, 2)
    panel.set_ylim(lines - 0.5, -0.5)
    for place, name in enumerate(names):
        x, y = divmod(place, lines)
        panel.text(x, y, from_left(f"{place + 1}  {short[name]}"), va="center_baseline")
