"""Parts that charts share: styles of series, axes, rows of names, points, whiskers, legends.

No two series differ by colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ...statistics.estimates import Estimate
from ...statistics.metric import Unit
from .marks import Mark

# matplotlib's types are known in part.
MplFigure = Any
"""A ``matplotlib.figure.Figure``."""
Axes = Any
"""A ``matplotlib.axes.Axes``."""

ONE_COLUMN = 3.3
TWO_COLUMNS = 6.9
MOST_IN_COLUMN = 8  # tested models; more take both columns of a page
NAME_LETTERS = 23
"""Largest number of letters of a name next to axes."""
TITLE_LETTERS = 20
"""Largest number of letters of a name above one of several axes side by side."""

# Colours -----------------------------------------------------------------------------------------

INK = "#1c2024"
MUTED = "#596069"
RULE = "#dcdfe3"
CONTEXT = "#c3c7cc"
WHITE = "#ffffff"


class SeriesStyle(NamedTuple):
    """Style of a series of points; an ``open`` marker is filled with white."""

    colour: str
    marker: str
    dash: str | tuple[float, tuple[float, ...]]
    open: bool = False

    @property
    def marker_settings(self) -> dict[str, Any]:
        """Settings of matplotlib's lines for the markers."""
        return {
            "marker": self.marker,
            "markersize": 4.0,
            "markerfacecolor": WHITE if self.open else self.colour,
            "markeredgecolor": self.colour,
            "markeredgewidth": 0.9,
            "color": self.colour,
        }


class Fill(NamedTuple):
    """Style of a part of a bar; ``ink`` is the colour of text on it."""

    colour: str
    hatch: str
    ink: str


STYLES = (
    SeriesStyle("#004488", "o", "-"),
    SeriesStyle("#d55e00", "s", (0, (4, 1.5)), open=True),
    SeriesStyle("#000000", "^", (0, (1, 1))),
    SeriesStyle("#008f68", "D", (0, (5, 1, 1, 1)), open=True),
    SeriesStyle("#6b1f7a", "v", "-"),
    SeriesStyle("#2b8cc4", "P", (0, (4, 1.5))),
    SeriesStyle("#6e3b00", "X", (0, (1, 1))),
    SeriesStyle("#c4628f", "p", (0, (5, 1, 1, 1)), open=True),
)
"""Styles of series: dark and lighter colours alternate, so that neighbours also differ in grey."""

FILLS = (
    Fill("#004488", "", WHITE),
    Fill("#8fc1e3", "", "#000000"),
    Fill("#b3541e", "///", "#000000"),
    Fill(WHITE, "...", "#000000"),
    Fill("#8a8a8a", "xxx", "#000000"),
    Fill("#f3e3b0", "\\\\\\", "#000000"),
)
"""Styles of the parts of a stacked bar, in order."""


def series_style(index: int) -> SeriesStyle:
    """The style of a series; there are enough styles for all series of a chart."""
    return STYLES[index % len(STYLES)]


def heat_colours() -> Any:
    """Matplotlib's map from 0 to 1 to colours of a heat map: the higher, the darker."""
    from matplotlib.colors import LinearSegmentedColormap

    shades = [WHITE, "#c6dbef", "#6baed6", "#2171b5", "#08306b"]
    return LinearSegmentedColormap.from_list("rates", shades)


def ink_on(colour: Any) -> str:
    """Black or white, whichever has more contrast (WCAG 2) with a colour of matplotlib."""
    from matplotlib.colors import to_rgb

    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in to_rgb(colour)
    )
    return WHITE if 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.179 else "#000000"


# Axes --------------------------------------------------------------------------------------------


def new_figure(width: float, height: float) -> MplFigure:
    """An empty figure; width and height are in inches."""
    from matplotlib.figure import Figure

    # texts are laid out once, for all formats: at this resolution, sizes are not rounded
    figure: MplFigure = Figure(figsize=(width, height), layout="constrained", dpi=300)
    figure.get_layout_engine().set(w_pad=0.02, h_pad=0.03, wspace=0.03, hspace=0.03)
    return figure


def small_multiples(many: int) -> tuple[MplFigure, Sequence[Axes]]:
    """A figure with axes for each of many tested models: two in a row, or four if very many."""
    across = 2 if many <= MOST_IN_COLUMN else 4
    rows = math.ceil(many / across)
    figure = new_figure(ONE_COLUMN if across == 2 else TWO_COLUMNS, rows * 1.2 + 0.45)
    places = figure.subplots(rows, across, sharex=True, sharey=True, squeeze=False).flatten()
    for index in range(many, len(places)):
        places[index].remove()
        if index >= across:
            places[index - across].tick_params(labelbottom=True)
    return figure, places[:many]


def value_axis(
    axes: Axes,
    name: Literal["x", "y"],
    unit: Unit,
    ends: tuple[float, float],
    label: str = "",
    *,
    most: int = 5,
    grid: bool = True,
) -> None:
    """An axis of values with ticks at round values; rates from 0 to 1 are written in percent.

    Args:
        axes: The axes.
        name: Name of the axis.
        unit: Unit of the values.
        ends: Lowest and highest value of the axis.
        label: Label of the axis.
        most: Largest number of spaces between ticks.
        grid: True to draw thin lines at the ticks.
    """
    from matplotlib.ticker import MaxNLocator

    def text(value: float, _: object) -> str:
        return f"{100 * value:.0f}" if unit == "percent" else f"{value:.{digits}f}"

    digits = 0 if unit == "count" or ends[1] - ends[0] >= 3 else 1
    axis = getattr(axes, f"{name}axis")
    steps = [1, 2, 2.5, 5, 10]
    axis.set_major_locator(MaxNLocator(nbins=most, steps=steps, integer=unit == "count"))
    axis.set_major_formatter(text)
    axes.set(**{f"{name}lim": ends, f"{name}label": label})
    if grid:
        axes.grid(visible=True, axis=name, color=RULE, linewidth=0.5, zorder=0)
        axes.set_axisbelow(True)


def value_limits(
    marks: Sequence[Mark], *, full_range: bool = False, least: float = math.inf
) -> tuple[float, float]:
    """Ends of an axis that contains marks and ``least``; 0 to 100 % if ``full_range``."""
    low = min(least, *(mark.ends[0] for mark in marks))
    high = max(mark.ends[1] for mark in marks)
    if marks[0].unit == "percent":
        tight = math.floor(10 * low + 1e-9) / 10, math.ceil(10 * high - 1e-9) / 10
        low, high = (0.0, 1.0) if full_range else (tight[0], max(tight[1], tight[0] + 0.1))
    elif marks[0].unit == "count":
        low, high = 0.0, max(1.0, high)
    pad = 0.03 * ((high - low) or 1.0)
    return low - pad, high + pad


def name_rows(axes: Axes, rows: Mapping[str, str]) -> None:
    """Rows from top to bottom with their labels; ``rows`` has the label of each name."""
    axes.set_yticks(range(len(rows)), list(rows.values()))
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


# Points ------------------------------------------------------------------------------------------

Placed = Sequence[tuple[float, Mark | Estimate]]
"""Values, each after its place on the other axis."""


def points(
    axes: Axes, placed: Placed, look: SeriesStyle, *, flat: bool, joined: bool = False
) -> None:
    """Draws points with whiskers, joined by a line if wanted; ``flat`` if values are horizontal."""
    places, values = [place for place, _ in placed], [mark.value for _, mark in placed]
    whiskers(axes, placed, look.colour, flat=flat)
    line = {"linestyle": look.dash if joined else "none", "linewidth": 1.1, "zorder": 3}
    axes.plot(*((values, places) if flat else (places, values)), **line, **look.marker_settings)


def whiskers(axes: Axes, placed: Placed, colour: str, *, flat: bool) -> None:
    """Draws the intervals; a mark without an interval has no whisker."""
    ends = [(place, mark.low, mark.high) for place, mark in placed if mark.low is not None]
    if ends:
        draw = axes.hlines if flat else axes.vlines
        draw(*zip(*ends, strict=True), colors=colour, linewidth=0.8, zorder=2)


# Legends -----------------------------------------------------------------------------------------


def series_legend(figure: MplFigure, titles: Sequence[str], *, lines: bool = False) -> None:
    """Draws a legend of series, with lines if points are joined; none for a single series."""
    from matplotlib.lines import Line2D

    if len(titles) > 1:
        handles: list[Line2D] = []
        for look in map(series_style, range(len(titles))):
            line = {"linestyle": look.dash if lines else "none", "linewidth": 1.1}
            settings: dict[str, Any] = {**look.marker_settings, **line}
            handles.append(Line2D([], [], **settings))
        legend(figure, handles, titles)


def legend(figure: MplFigure, handles: Sequence[object], titles: Sequence[str]) -> None:
    """Draws a legend above the axes, two titles a line in a figure of one column."""
    look = {"handlelength": 2.2, "handletextpad": 0.4, "columnspacing": 1.0, "borderpad": 0.1}
    columns = 2 if figure.get_figwidth() <= ONE_COLUMN else 4
    figure.legend(handles, titles, loc="outside upper center", ncols=columns, **look)
