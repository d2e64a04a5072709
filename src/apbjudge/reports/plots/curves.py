"""Lines over steps, stages or levels, with a whisker at each point.

Up to five tested models share a panel, each with its name at its line. With more, each has a
panel of its own, the others pale behind it where there is room.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .drawing import grid, marker, room_for, series_legend, style_of, value_axis, whiskers
from .marks import Mark, distinct, natural
from .names import drawable, labels
from .palette import CONTEXT, INK, Style
from .seam import MOST_IN_COLUMN, ONE_COLUMN, TWO_COLUMNS, Panel, Sheet, lay_out, new_sheet

TITLE_ROOM = 92.0  # points, over one of several panels side by side
_NAME_ROOM = 66.0
_LINE = 8.6  # points from one name to the next
_MOST_TOGETHER = 5  # lines of one panel; the whiskers of more can't be told apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What goes where.

    Attributes:
        panels: Titles of the panels.
        series: The lines that a panel may have, in order.
        panel_of: The panel of a mark.
        series_of: Its line.
        places: The places of the horizontal axis, in order.
        ends: Of the axis of values.
        across: Label of the horizontal axis.
        up: Label of the axis of values.
    """

    panels: tuple[str, ...]
    series: tuple[str, ...]
    panel_of: Callable[[Mark], str]
    series_of: Callable[[Mark], str]
    places: tuple[str, ...]
    ends: tuple[float, float]
    across: str
    up: str


def curve_sheet(
    marks: Sequence[Mark],
    *,
    names: Sequence[str],
    across: str,
    up: str,
    places: Sequence[str] = (),
    whole: bool = False,
) -> Sheet:
    """Draws the lines; a place without a figure leaves its line open.

    Args:
        marks: What is drawn, all of one unit.
        names: The tested models, in order.
        across: Label of the horizontal axis.
        up: Label of the axis of values.
        places: The places of the horizontal axis; none for those of the marks.
        whole: Whether the axis of values starts at 0.
    """
    sections = distinct(mark.section for mark in marks)
    many = len(names) > _MOST_TOGETHER
    plan = Plan(
        panels=tuple(names) if many else sections,
        series=sections if many else tuple(names),
        panel_of=_name if many else _section,
        series_of=_section if many else _name,
        places=tuple(places) or natural(mark.at for mark in marks),
        ends=room_for(marks, whole=False, least=0.0 if whole else None),
        across=across,
        up=up,
    )
    return _multiples(marks, plan) if many else _few(marks, plan)


def _name(mark: Mark) -> str:
    return mark.name


def _section(mark: Mark) -> str:
    return mark.section


def _few(marks: Sequence[Mark], plan: Plan) -> Sheet:
    """A panel per protocol below each other, names beside the lines."""
    height = max(1.45, 0.125 * len(plan.series) + 0.3)
    sheet = new_sheet(ONE_COLUMN, len(plan.panels) * (height + 0.2) + 0.2)
    panels = sheet.subplots(len(plan.panels), 1, sharex=True, squeeze=False)[:, 0]
    placed: list[list[object]] = []
    for panel, title in zip(panels, plan.panels, strict=True):
        own = [mark for mark in marks if plan.panel_of(mark) == title]
        _lines(panel, own, plan)
        placed.append(_name_lines(panel, own, plan))
        _axes(panel, plan)
        panel.set_ylabel(plan.up)
        panel.set_title(title if len(plan.panels) > 1 else "", pad=3)
    panels[-1].set_xlabel(plan.across)
    lay_out(sheet)
    for panel, notes in zip(panels, placed, strict=True):
        _spread(panel, notes)
    return sheet


def _multiples(marks: Sequence[Mark], plan: Plan) -> Sheet:
    """A panel per tested model."""
    across = 4 if len(plan.panels) > MOST_IN_COLUMN else 2
    rows = math.ceil(len(plan.panels) / across)
    sheet = new_sheet(TWO_COLUMNS if across == 4 else ONE_COLUMN, rows * 1.2 + 0.45)
    grid_of = sheet.subplots(rows, across, sharex=True, sharey=True, squeeze=False)
    panels = grid_of.flatten()
    short = labels(plan.panels, TITLE_ROOM)
    for panel, title in zip(panels, plan.panels, strict=False):
        if len(plan.series) == 1:
            _context(panel, marks, plan)
        _lines(panel, [mark for mark in marks if plan.panel_of(mark) == title], plan)
        _axes(panel, plan)
        panel.set_title(short[title], pad=3)
    leave_out(panels, len(plan.panels), across)
    sheet.supxlabel(plan.across, fontsize="medium")
    sheet.supylabel(plan.up, fontsize="medium")
    series_legend(sheet, plan.series, lines=True)
    return sheet


def leave_out(panels: Sequence[Panel], used: int, across: int) -> None:
    """Removes the panels of a grid that hold nothing; those above them get the axis' labels."""
    for place in range(used, len(panels)):
        panels[place].remove()
        if place >= across:
            panels[place - across].tick_params(labelbottom=True)


def _points_of(marks: Sequence[Mark], plan: Plan, series: str) -> list[tuple[float, Mark]]:
    """The points of a line with their places, moved a little so that whiskers stay apart."""
    many = len(plan.series)
    shift = (plan.series.index(series) - (many - 1) / 2) * min(0.08, 0.4 / many)
    return [(plan.places.index(m.at) + shift, m) for m in marks if plan.series_of(m) == series]


def _lines(panel: Panel, marks: Sequence[Mark], plan: Plan) -> None:
    for place, series in enumerate(plan.series):
        found, look = _points_of(marks, plan, series), style_of(place)
        if found:
            whiskers(panel, found, look, flat=False)
            _line(panel, found, plan, look)


def _line(panel: Panel, found: Sequence[tuple[float, Mark]], plan: Plan, look: Style) -> None:
    """One line, open where a place has no figure."""
    shift = found[0][0] - plan.places.index(found[0][1].at)
    values = {mark.at: mark.value for _, mark in found}
    xs = [place + shift for place in range(len(plan.places))]
    ys = [values.get(place, math.nan) for place in plan.places]
    panel.plot(xs, ys, linestyle=look.dash, linewidth=1.1, zorder=3, **marker(look))


def _context(panel: Panel, marks: Sequence[Mark], plan: Plan) -> None:
    """The lines of all tested models, pale, to see one among the others."""
    for name in plan.panels:
        values = {mark.at: mark.value for mark in marks if mark.name == name}
        ys = [values.get(place, math.nan) for place in plan.places]
        panel.plot(range(len(ys)), ys, color=CONTEXT, linewidth=0.6, zorder=1)


def _axes(panel: Panel, plan: Plan) -> None:
    panel.set_xticks(range(len(plan.places)), list(map(drawable, plan.places)))
    panel.set_xlim(-0.35, len(plan.places) - 0.65)
    value_axis(panel.yaxis, "percent", plan.ends)
    panel.set_ylim(*plan.ends)
    grid(panel, "y")


def _name_lines(panel: Panel, marks: Sequence[Mark], plan: Plan) -> list[object]:
    """Names to the right of the panel, each tied to the last point of its line."""
    short = labels(plan.series, _NAME_ROOM)
    notes: list[object] = []
    for place, series in enumerate(plan.series):
        found = _points_of(marks, plan, series)
        if found:
            x, last = max(found, key=lambda pair: pair[0])
            notes.append(_note(panel, short[series], (x, last.value), style_of(place)))
    return notes


def _note(panel: Panel, text: str, at: tuple[float, float], look: Style) -> object:
    return panel.annotate(
        text,
        xy=at,
        xytext=(1.05, at[1]),
        textcoords=("axes fraction", "data"),
        va="center_baseline",
        color=INK,
        annotation_clip=False,
        arrowprops={
            "arrowstyle": "-",
            "color": look.colour,
            "linewidth": 0.5,
            "shrinkA": 0,
            "shrinkB": 2,
            "relpos": (0, 0.5),
        },
    )


def _spread(panel: Panel, notes: Sequence[object]) -> None:
    """Moves names apart, in the order of their lines."""
    low, high = panel.get_ylim()
    per_point = (high - low) / (panel.get_window_extent().height * 72 / panel.figure.dpi)
    ordered: list[Panel] = sorted(notes, key=_height)
    wanted = [_height(note) for note in ordered]
    for note, place in zip(ordered, spread(wanted, _LINE * per_point, (low, high)), strict=True):
        note.set_position((1.05, place))


def _height(note: Panel) -> float:
    return float(note.xy[1])


def spread(wanted: Sequence[float], gap: float, ends: tuple[float, float]) -> list[float]:
    """Places near the wanted ones, at least a gap apart, within the ends where there is room.

    Args:
        wanted: In rising order.
        gap: Least distance.
        ends: Where places start and end.
    """
    places: list[float] = []
    for value in wanted:
        places.append(max(value, places[-1] + gap if places else value))
    ceiling = max(ends[1], ends[0] + gap * (len(places) - 1))
    for i in reversed(range(len(places))):
        places[i] = min(places[i], ceiling)
        ceiling = places[i] - gap
    return places
