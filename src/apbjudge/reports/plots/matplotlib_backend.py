"""The parts of matplotlib that figures use: settings, files, axes, points and legends.

Everything is drawn with matplotlib's default style and our few settings, whatever the user's own
settings are, and on canvases without a window.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from itertools import accumulate, pairwise
from typing import Any

from ..numbers import Unit
from .marks import Mark
from .palette import INK, MUTED, RULE, Fill, SeriesStyle, series_style
from .text import FONT_SIZE, OURS, Families, text_width

# matplotlib's types are known in part.
MplFigure = Any
"""A ``matplotlib.figure.Figure``."""
Axes = Any
"""A ``matplotlib.axes.Axes``."""

ONE_COLUMN = 3.3
TWO_COLUMNS = 6.9
MOST_IN_COLUMN = 8  # tested models; more of them take both columns of a page
TITLE_ROOM = 92.0  # points, over one of several axes side by side
NAME_ROOM = 92.0  # points, left of the axes
WHISKER = 0.8
_NOTE_HEIGHT = 0.16  # inches that a line of text takes
_MAX_PIXELS = 30_000
_LEGEND_PAD = 25.5  # points that a legend's entry takes beside its text

_SETTINGS: dict[str, Any] = {
    "font.size": FONT_SIZE,
    "axes.titlesize": 7.5,
    "axes.labelsize": FONT_SIZE,
    "xtick.labelsize": FONT_SIZE,
    "ytick.labelsize": FONT_SIZE,
    "legend.fontsize": FONT_SIZE,
    "text.parse_math": False,  # names may hold dollar signs
    "text.usetex": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "hatch.linewidth": 0.5,
    "legend.frameon": False,
    "svg.fonttype": "path",  # outlines look the same everywhere; a viewer's own font would not
}


# Figures and files -------------------------------------------------------------------------------


@contextmanager
def style(salt: str, families: Families = (OURS,)) -> Generator[None]:
    """Our settings for as long as something is drawn.

    Args:
        salt: Seed of the ids inside an SVG.
        families: The fonts, those first that are asked first for a character.
    """
    from matplotlib import style as styles

    own = {"svg.hashsalt": salt, "font.family": list(families)}
    with styles.context(["default", {**_SETTINGS, **own}]):
        yield


def new_figure(width: float, height: float) -> MplFigure:
    """An empty figure; width and height are in inches."""
    from matplotlib.figure import Figure

    figure: MplFigure = Figure(figsize=(width, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.02, h_pad=0.03, wspace=0.03, hspace=0.03)
    return figure


def svg_bytes(figure: MplFigure, *, key: str, title: str, alt: str, note: str = "") -> bytes:
    """A figure as SVG: no date, no reference to anything outside, with title and description.

    Args:
        figure: The figure.
        key: Prefix of ids, unique among the figures of a page: letters, digits and hyphens.
        title: The title.
        alt: The description.
        note: A line below everything that is drawn; empty for none.
    """
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    text = _saved(figure, "svg", nothing, note).decode()
    # without the prologue, and without comments, which repeat the texts
    svg = re.sub(r"[ \t]*<!--.*?-->\n?", "", text[text.index("<svg") :], flags=re.DOTALL)
    # coordinates to a hundredth of a point: nobody sees more
    svg = re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), svg)
    end = svg.index(">")
    described = (
        f' role="img" aria-labelledby="{key}-title {key}-desc">'
        f'\n <title id="{key}-title">{escape(title)}</title>'
        f'\n <desc id="{key}-desc">{escape(alt)}</desc>'
    )
    return f"{svg[:end]}{described}{svg[end + 1 :]}".encode()


def png_bytes(figure: MplFigure, *, dpi: int, note: str = "") -> bytes:
    """A figure as PNG; a very long one has fewer dots per inch than asked for."""
    longest = max(figure.get_size_inches()) + (_NOTE_HEIGHT if note else 0)
    return _saved(figure, "png", {"Software": None}, note, dpi=min(dpi, _MAX_PIXELS / longest))


def _saved(
    figure: MplFigure, kind: str, metadata: Mapping[Any, None], note: str, dpi: float = 72
) -> bytes:
    """A figure as a file; a note has room of its own below, and so moves nothing."""
    from matplotlib.transforms import Bbox

    area = None
    if note:
        width, height = figure.get_size_inches()
        figure.text(0.5, -_NOTE_HEIGHT / 2 / height, note, ha="center", va="center")
        area = Bbox.from_extents(0, -_NOTE_HEIGHT, width, height)
    out = io.BytesIO()
    figure.savefig(out, format=kind, dpi=dpi, metadata=metadata, bbox_inches=area)
    return out.getvalue()


# Axes --------------------------------------------------------------------------------------------


def value_axis(axis: Any, unit: Unit, ends: tuple[float, float], *, most: int = 5) -> None:
    """Ticks of an axis of values at round values; rates from 0 to 1 are written in percent.

    Args:
        axis: ``axes.xaxis`` or ``axes.yaxis``.
        unit: Unit of the values.
        ends: Lowest and highest value of the axis.
        most: Spaces between ticks at most.
    """
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    digits = 0 if ends[1] - ends[0] >= 3 else 1

    def text(value: float, _: object) -> str:
        return f"{100 * value:.0f}" if unit == "percent" else f"{value:.{digits}f}"

    steps = [1, 2, 2.5, 5, 10]
    axis.set_major_locator(MaxNLocator(nbins=most, steps=steps, integer=unit == "count"))
    axis.set_major_formatter(FuncFormatter(text))


def value_limits(
    marks: Sequence[Mark], *, whole: bool = False, least: float = math.inf
) -> tuple[float, float]:
    """Lowest and highest value of an axis of values.

    Args:
        marks: Values that the axis has room for.
        whole: Whether rates have an axis from 0 to 100 % whatever they are.
        least: Another value that the axis has room for.
    """
    low = min(least, *(mark.ends[0] for mark in marks))
    high = max(mark.ends[1] for mark in marks)
    if marks[0].unit == "percent":
        tight = math.floor(10 * low + 1e-9) / 10, math.ceil(10 * high - 1e-9) / 10
        low, high = (0.0, 1.0) if whole else (tight[0], max(tight[1], tight[0] + 0.1))
    elif marks[0].unit == "count":
        low, high = 0.0, max(1.0, high)
    pad = 0.03 * ((high - low) or 1.0)
    return low - pad, high + pad


def grid(axes: Axes, axis: str) -> None:
    """Thin lines to read values by."""
    axes.grid(visible=True, axis=axis, color=RULE, linewidth=0.5, zorder=0)
    axes.set_axisbelow(True)


def name_rows(axes: Axes, rows: Mapping[str, str]) -> None:
    """Rows from top to bottom with their labels; ``rows`` has the label of each name."""
    axes.set_yticks(range(len(rows)), list(rows.values()))
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


def small_multiples(many: int) -> tuple[MplFigure, Sequence[Axes]]:
    """A figure with axes for each of many tested models: two in a row, or four of very many."""
    across = 2 if many <= MOST_IN_COLUMN else 4
    rows = math.ceil(many / across)
    figure = new_figure(ONE_COLUMN if across == 2 else TWO_COLUMNS, rows * 1.2 + 0.45)
    places = figure.subplots(rows, across, sharex=True, sharey=True, squeeze=False).flatten()
    for index in range(many, len(places)):
        places[index].remove()
        if index >= across:
            places[index - across].tick_params(labelbottom=True)
    return figure, places[:many]


# Points ------------------------------------------------------------------------------------------


def points(
    axes: Axes, placed: Sequence[tuple[float, Mark]], look: SeriesStyle, *, flat: bool
) -> None:
    """Points with their whiskers and no line between them.

    Args:
        axes: The axes.
        placed: Each mark with its place on the other axis.
        look: The series' style.
        flat: Whether values run from left to right.
    """
    places, values = [place for place, _ in placed], [mark.value for _, mark in placed]
    whiskers(axes, placed, look.colour, flat=flat)
    xy = (values, places) if flat else (places, values)
    axes.plot(*xy, linestyle="none", zorder=3, **look.marker_settings)


def whiskers(axes: Axes, placed: Sequence[tuple[float, Mark]], colour: str, *, flat: bool) -> None:
    """The intervals alone; a mark without an interval has none."""
    ends = [(place, *mark.ends) for place, mark in placed if mark.low is not None]
    if ends:
        draw = axes.hlines if flat else axes.vlines
        draw(*zip(*ends, strict=True), colors=colour, linewidth=WHISKER, zorder=2)


# Legends -----------------------------------------------------------------------------------------


def series_legend(figure: MplFigure, titles: Sequence[str], *, lines: bool = False) -> None:
    """A legend of series above the axes; none for a single series.

    Args:
        figure: The figure.
        titles: One per series, in order.
        lines: Whether points are joined by lines.
    """
    from matplotlib.lines import Line2D

    handles: list[Any] = []
    for look in map(series_style, range(len(titles))):
        line = {"linestyle": look.dash if lines else "none", "linewidth": 1.1}
        settings: dict[str, Any] = {**look.marker_settings, **line}
        handles.append(Line2D([], [], **settings))
    if len(titles) > 1:
        legend(figure, handles, titles)


def fill_legend(figure: MplFigure, fills: Sequence[Fill], titles: Sequence[str]) -> None:
    """A legend of areas above the axes."""
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=fill.colour, hatch=fill.hatch, edgecolor=INK, linewidth=0.5)
        for fill in fills
    ]
    legend(figure, handles, titles)


def legend(figure: MplFigure, handles: Sequence[object], titles: Sequence[str]) -> None:
    """A legend above the axes, in as few lines as there is room for."""
    room = 72 * float(figure.get_figwidth()) - 12
    figure.legend(
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
        room: Width of the figure, in the same unit.
    """
    for many in range(len(widths), 1, -1):
        deep, longer = divmod(len(widths), many)  # the first columns hold one more
        ends = list(accumulate(deep + (column < longer) for column in range(many)))
        columns = [widths[start:end] for start, end in pairwise([0, *ends])]
        if sum(map(max, columns)) <= room:
            return many
    return 1
