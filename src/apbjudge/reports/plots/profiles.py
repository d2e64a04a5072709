"""Error rates with intervals, a small panel per tested model."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .curves import TITLE_ROOM, leave_out
from .drawing import grid, points, room_for, series_legend, style_of, value_axis
from .marks import Mark, distinct
from .names import labels
from .seam import MOST_IN_COLUMN, ONE_COLUMN, TWO_COLUMNS, Panel, Sheet, new_sheet


def profile_sheet(marks: Sequence[Mark], *, names: Sequence[str]) -> Sheet:
    """Draws the panels: two in a row, or four where there are many tested models.

    Args:
        marks: Rates of errors; E2-H and E2-S stand in one place, since no protocol here has both.
        names: The tested models, in order.
    """
    across = 2 if len(names) <= MOST_IN_COLUMN else 4
    width = ONE_COLUMN if across == 2 else TWO_COLUMNS
    rows = math.ceil(len(names) / across)
    sheet = new_sheet(width, rows * 1.2 + 0.45)
    panels = sheet.subplots(rows, across, sharex=True, sharey=True, squeeze=False).flatten()
    sections = distinct(mark.section for mark in marks)
    short = labels(distinct(names), TITLE_ROOM)
    for panel, name in zip(panels, names, strict=False):
        _panel(panel, [mark for mark in marks if mark.name == name], marks, sections)
        panel.set_title(short[name], pad=3)
    leave_out(panels, len(names), across)
    sheet.supylabel("Plans with the error, %", fontsize="medium")
    series_legend(sheet, sections)
    return sheet


def _panel(
    panel: Panel, own: Sequence[Mark], marks: Sequence[Mark], sections: Sequence[str]
) -> None:
    codes = sorted(distinct(mark.column[:2] for mark in marks))
    for place, section in enumerate(sections):
        shift = (place - (len(sections) - 1) / 2) * 0.3
        found = [(codes.index(m.column[:2]) + shift, m) for m in own if m.section == section]
        if found:
            points(panel, found, style_of(place), flat=False)
    ends = room_for(marks, whole=False)
    panel.set_xticks(range(len(codes)), codes)
    panel.set_xlim(-0.5, len(codes) - 0.5)
    value_axis(panel.yaxis, "percent", ends)
    panel.set_ylim(*ends)
    panel.tick_params(axis="x", length=0)
    grid(panel, "y")
