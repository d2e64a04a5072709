"""The error profile: a row per tested model, a column per code, a panel per protocol."""

from __future__ import annotations

from collections.abc import Sequence

from .dots import NAME_ROOM
from .marks import Mark, distinct, percent
from .names import labels
from .palette import ink_on, shade
from .seam import MOST_IN_COLUMN, ONE_COLUMN, TWO_COLUMNS, Panel, Sheet, add_cell, new_sheet

_ROW, _HEAD = 0.165, 0.36  # inches


def heat_sheet(marks: Sequence[Mark], *, names: Sequence[str]) -> Sheet:
    """Draws the panels below each other, or side by side where there are many tested models.

    Args:
        marks: Rates of errors.
        names: The tested models, from top to bottom.
    """
    sections = distinct(mark.section for mark in marks)
    codes = [_codes(marks, section) for section in sections]
    beside = len(names) > MOST_IN_COLUMN and len(sections) > 1
    rows = 1 if beside else len(sections)
    width = TWO_COLUMNS if beside else ONE_COLUMN
    sheet = new_sheet(width, rows * (len(names) * _ROW + _HEAD) + 0.15)
    ratios = [len(own) for own in codes] if beside else [1]
    shape = (rows, len(ratios))
    panels = sheet.subplots(*shape, squeeze=False, width_ratios=ratios).flatten()
    top = max(0.1, *(mark.value for mark in marks))
    for place, section in enumerate(sections):
        own = [mark for mark in marks if mark.section == section]
        _panel(panels[place], own, names, codes[place], top)
        panels[place].set_title(section, pad=3)
        panels[place].tick_params(labelleft=not beside or place == 0)
    sheet.supxlabel("Plans with the error, %", fontsize="medium")
    return sheet


def _codes(marks: Sequence[Mark], section: str) -> tuple[str, ...]:
    return tuple(sorted(distinct(mark.column for mark in marks if mark.section == section)))


def _panel(
    panel: Panel, marks: Sequence[Mark], names: Sequence[str], codes: Sequence[str], top: float
) -> None:
    for mark in marks:
        x, y = codes.index(mark.column), names.index(mark.name)
        colour = shade(mark.value / top)
        add_cell(panel, x, y, facecolor=colour, edgecolor="#ffffff", linewidth=0.8, clip_on=False)
        text = percent(mark.value)
        panel.text(x, y, text, ha="center", va="center_baseline", color=ink_on(colour))
    panel.set_xlim(-0.5, len(codes) - 0.5)
    panel.set_ylim(len(names) - 0.5, -0.5)
    panel.set_xticks(range(len(codes)), codes)
    short = labels(distinct(names), NAME_ROOM)
    panel.set_yticks(range(len(names)), [short[name] for name in names])
    panel.tick_params(length=0, pad=2)
    panel.spines[:].set_visible(False)
