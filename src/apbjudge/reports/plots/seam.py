"""The one place, beside ``fonts``, that knows matplotlib and pandas, whose types are in part known.

Everything is drawn with matplotlib's default style and our few settings, whatever the user's own
settings are, and on canvases without a window.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any

import numpy as np

from ...records.tables import text_cell
from .fonts import OURS, SMALL, Families
from .palette import INK, MUTED

Sheet = Any
"""A ``matplotlib.figure.Figure``."""
Panel = Any
"""A ``matplotlib.axes.Axes``."""
Frame = Any
"""A ``pandas.DataFrame``."""
Vector = np.ndarray[Any, Any]

ONE_COLUMN = 3.3
TWO_COLUMNS = 6.9
MOST_IN_COLUMN = 8  # tested models; more of them take both columns of a page
_PLAIN = 7.5
_LINE = 0.16  # inches that a line of text takes
_MOST_PIXELS = 30_000

_SETTINGS: dict[str, Any] = {
    "font.size": SMALL,
    "axes.titlesize": _PLAIN,
    "axes.labelsize": SMALL,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
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


@contextmanager
def style(salt: str, families: Families = (OURS,)) -> Generator[None]:
    """Our settings for as long as something is drawn.

    Args:
        salt: What ids inside an SVG are made of; the same ones each time for the same salt.
        families: The fonts, those first that are asked first for a character.
    """
    from matplotlib import style as styles

    own = {"svg.hashsalt": salt, "font.family": list(families)}
    with styles.context(["default", {**_SETTINGS, **own}]):
        yield


def new_sheet(width: float, height: float) -> Sheet:
    """An empty sheet.

    Args:
        width: In inches.
        height: In inches.
    """
    from matplotlib.figure import Figure

    sheet: Sheet = Figure(figsize=(width, height), layout="constrained")
    sheet.get_layout_engine().set(w_pad=0.02, h_pad=0.03, wspace=0.03, hspace=0.03)
    return sheet


def svg_bytes(sheet: Sheet, *, key: str, title: str, alt: str, below: str = "") -> bytes:
    """A sheet as SVG: no date, no reference to anything outside, with title and description.

    Args:
        sheet: What is drawn.
        key: Told apart by it from other figures of a page: letters, digits and hyphens.
        title: The title.
        alt: The description.
        below: A line under all that is drawn; empty for none.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    drawn = _printed(FigureCanvasSVG(sheet), "svg", nothing, below)
    return _described(drawn.decode(), key, title, alt).encode()


def _described(svg: str, key: str, title: str, alt: str) -> str:
    """Without prologue and comments, which hold the texts again; with title and description."""
    body = re.sub(r"[ \t]*<!--.*?-->\n?", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    body = re.sub(r' d="[^"]*"', _shorter, body)
    end = body.index(">")
    names = f'role="img" aria-labelledby="{key}-title {key}-desc"'
    said = (
        f'\n <title id="{key}-title">{escape(title)}</title>'
        f'\n <desc id="{key}-desc">{escape(alt)}</desc>'
    )
    return f"{body[:end]} {names}>{said}{body[end + 1 :]}"


def _shorter(path: re.Match[str]) -> str:
    """Places to a hundredth of a point: nobody sees more."""
    return re.sub(r"(\.\d\d)\d+", r"\1", path[0])


def png_bytes(sheet: Sheet, *, dpi: int, below: str = "") -> bytes:
    """A sheet as PNG; a very long one with fewer dots than asked for.

    Args:
        sheet: What is drawn.
        dpi: Dots per inch.
        below: A line under all that is drawn; empty for none.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    longest = max(sheet.get_size_inches()) + (_LINE if below else 0)
    sheet.set_dpi(min(dpi, _MOST_PIXELS / longest))
    return _printed(FigureCanvasAgg(sheet), "png", {"Software": None}, below)


def _printed(canvas: Any, kind: str, metadata: Mapping[Any, None], below: str) -> bytes:
    """A canvas as a file; a line below has room of its own, and so moves nothing."""
    out = io.BytesIO()
    if not below:
        getattr(canvas, f"print_{kind}")(out, metadata=metadata)
        return out.getvalue()
    from matplotlib.transforms import Bbox

    sheet: Sheet = canvas.figure
    width, height = sheet.get_size_inches()
    sheet.text(0.5, -_LINE / 2 / height, below, ha="center", va="center")
    area = Bbox.from_extents(0, -_LINE, width, height)
    canvas.print_figure(out, format=kind, dpi=sheet.dpi, metadata=metadata, bbox_inches=area)
    return out.getvalue()


def lay_out(sheet: Sheet) -> None:
    """Gives every part of a sheet its place, so that the places can be asked for."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(sheet)
    sheet.draw_without_rendering()


def line_handle(**look: Any) -> Any:
    """A line of a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **look)


def area_handle(**look: Any) -> Any:
    """An area of a legend."""
    from matplotlib.patches import Patch

    return Patch(**look)


def add_cell(panel: Panel, x: float, y: float, **look: Any) -> None:
    """A square of side 1 around a point within the panel, which takes no room beside it."""
    from matplotlib.patches import Rectangle

    panel.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, in_layout=False, **look))


def ticks(axis: Any, written: Callable[[float], str], *, most: int, whole: bool) -> None:
    """Round values along an axis.

    Args:
        axis: ``panel.xaxis`` or ``panel.yaxis``.
        written: The text of a value.
        most: Spaces between ticks at most.
        whole: Whether only whole numbers are marked.
    """
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10], integer=whole))

    def text(value: float, _: object) -> str:
        return written(value)

    axis.set_major_formatter(FuncFormatter(text))


def frame(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Frame:
    """A frame with these columns in this order; half a character pair is escaped."""
    import pandas as pd

    clean = [{name: _whole(value) for name, value in row.items()} for row in rows]
    return pd.DataFrame(clean, columns=list(columns))


def _whole(value: Any) -> Any:
    """Neither pandas' strings nor files can hold lone surrogates."""
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


def csv_bytes(table: Frame) -> bytes:
    """A frame as CSV; a missing figure is empty."""
    safe = table.map(text_cell)
    text: str = safe.to_csv(index=False, lineterminator="\n")
    return text.encode()


def numbers(table: Frame, name: str) -> Vector:
    """A column as floats; NaN where there is none."""
    return np.asarray(table[name].to_numpy(dtype=float, na_value=np.nan))


def texts(table: Frame, name: str) -> list[str]:
    """A column as texts."""
    return [str(value) for value in table[name].tolist()]
