"""Drawings of doubt: agreement by certainty, and on the items a judge is surest of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...statistics.estimates import Estimate
from .drawing import WHISKER, grid, legend, marker, style_of, value_axis
from .palette import MUTED
from .seam import ONE_COLUMN, Panel, Sheet, line_handle, new_sheet

_DIAGONAL: dict[str, Any] = {"color": MUTED, "linewidth": 0.8, "linestyle": (0, (4, 2))}


def calibration_sheet(places: Sequence[float], agreement: Sequence[Estimate]) -> Sheet:
    """Draws agreement against certainty, and below it how many items each point is of.

    Args:
        places: Mean certainty of each bin, 0.5 to 1.
        agreement: Agreement with humans in each.
    """
    sheet = new_sheet(ONE_COLUMN, 3.1)
    panel, below = sheet.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    panel.plot([0.5, 1], [0.5, 1], zorder=1, **_DIAGONAL)
    _points(panel, places, agreement, joined=False)
    low = min([0.5, *(e.low if e.low is not None else e.value or 0.0 for e in agreement)])
    _agreement_axis(panel, low)
    counts = [found.n_items for found in agreement]
    below.bar(places, counts, width=0.008, color=MUTED)
    below.set_ylim(0, 1.1 * max(counts))
    value_axis(below.yaxis, "count", (0.0, float(max(counts))), most=2)
    below.set_ylabel("Items")
    below.set_xlim(0.485, 1.015)
    value_axis(below.xaxis, "percent", (0.5, 1.0))
    below.set_xlabel("Replies with the more frequent verdict, %")
    sheet.align_ylabels()
    legend(sheet, [line_handle(**_DIAGONAL)], ["as often right as sure"])
    return sheet


def coverage_sheet(kept: Sequence[float], agreement: Sequence[Estimate]) -> Sheet:
    """Draws agreement on the surest items against how many of all items they are.

    Args:
        kept: Share of items, rising to 1.
        agreement: Agreement with humans on them.
    """
    sheet = new_sheet(ONE_COLUMN, 2.2)
    panel = sheet.subplots()
    _points(panel, kept, agreement, joined=True)
    low = min(e.low if e.low is not None else e.value or 0.0 for e in agreement)
    _agreement_axis(panel, low)
    panel.set_xlim(-0.02, 1.03)
    value_axis(panel.xaxis, "percent", (0.0, 1.0))
    panel.set_xlabel("Items kept, the surest first, %")
    return sheet


def _points(
    panel: Panel, places: Sequence[float], agreement: Sequence[Estimate], *, joined: bool
) -> None:
    look = style_of(0)
    held = [
        (at, e.low, e.high) for at, e in zip(places, agreement, strict=True) if e.low is not None
    ]
    if held:
        at, lows, highs = zip(*held, strict=True)
        panel.vlines(at, lows, highs, colors=look.colour, linewidth=WHISKER, zorder=2)
    values = [found.value for found in agreement]
    line = look.dash if joined else "none"
    panel.plot(places, values, linestyle=line, linewidth=1.1, zorder=3, **marker(look))


def _agreement_axis(panel: Panel, low: float) -> None:
    start = int(10 * low) / 10
    value_axis(panel.yaxis, "percent", (start, 1.0))
    panel.set_ylim(start - 0.02, 1.02)
    panel.set_ylabel("Agrees with humans, %")
    grid(panel, "y")
