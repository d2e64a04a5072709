"""A figure: its picture, the data behind it, and a description in words."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from ...records.tables import printed_cell
from .axes import INK, MUTED, MplFigure
from .marks import Frame
from .text import BOXES_LINE, FONT_SIZE, OURS, Families, cleaned, font_families, missing_characters

_NOTE_HEIGHT = 0.16  # inches of a line of text
_MAX_PIXELS = 30_000

_SETTINGS: dict[str, Any] = {
    "font.size": FONT_SIZE,
    "axes.titlesize": 7.5,
    **dict.fromkeys(("axes.labelsize", "xtick.labelsize", "ytick.labelsize"), FONT_SIZE),
    "legend.fontsize": FONT_SIZE,
    "text.parse_math": False,  # names may hold dollar signs
    "text.usetex": False,
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), INK),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), MUTED),
    **dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width"), 0.6),
    **dict.fromkeys(("xtick.major.size", "ytick.major.size"), 2.5),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    "hatch.linewidth": 0.5,
    "pdf.fonttype": 42,  # publishers refuse Type 3
    "svg.fonttype": "path",  # outlines look the same everywhere, unlike a viewer's own font
}


@contextmanager
def style(salt: str, families: Families = (OURS,)) -> Generator[None]:
    """Applies matplotlib's default style and our settings, in place of the user's, while drawing.

    Args:
        salt: Seed of the ids inside an SVG.
        families: The fonts, in the order in which they are tried for a character.
    """
    from matplotlib import style as styles

    own = {"svg.hashsalt": salt, "font.family": list(families)}
    with styles.context(["default", {**_SETTINGS, **own}]):
        yield


@dataclass(frozen=True, kw_only=True, eq=False)
class Figure:
    """A figure for a paper; the same figure always has the same bytes.

    Attributes:
        key: Name of its files, unique among the figures: ``a-z``, ``0-9`` and hyphens.
        title: Its content, without a full stop; part of the caption, not of the picture.
        note: Text below it: intervals, numbers of rows, bounds; may be empty.
        alt: Text alternative: one or two sentences.
        data: A pandas DataFrame, one row per drawn value: rates from 0 to 1, whole names, NaN or
            None for missing ends of intervals, ``n`` rows behind the value.
        draw: Draws the figure with matplotlib.
    """

    key: str
    title: str
    alt: str
    data: Frame
    draw: Callable[[], MplFigure]
    note: str = ""

    def svg(self) -> bytes:
        """The figure as SVG; texts are outlines, and the file has no external references."""
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        text = self._saved("svg", nothing, 72).decode()
        # removes the prologue, and the comments, which repeat the texts
        svg = re.sub(r"[ \t]*<!--.*?-->\n?", "", text[text.index("<svg") :], flags=re.DOTALL)
        # a hundredth of a point is precise enough
        svg = re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), svg)
        description = f"{self.alt} {self.note}".strip()
        described = (
            f' role="img" aria-labelledby="{self.key}-title {self.key}-desc">'
            f'\n <title id="{self.key}-title">{escape(self.title)}</title>'
            f'\n <desc id="{self.key}-desc">{escape(description)}</desc>'
        )
        return svg.replace(">", described, 1).encode()

    def pdf(self) -> bytes:
        """The figure as PDF, for LaTeX, with embedded TrueType fonts."""
        return self._saved("pdf", dict.fromkeys(("CreationDate", "Creator", "Producer")), 72)

    def png(self) -> bytes:
        """The figure as PNG with 300 dots per inch; fewer if it exceeds 30,000 dots in length."""
        return self._saved("png", {"Software": None}, 300)

    def csv(self) -> bytes:
        """The data as CSV; missing values are empty, unprintable characters escaped."""
        text: str = self.data.map(printed_cell).to_csv(index=False, lineterminator="\n")
        return text.encode()

    def style(self) -> AbstractContextManager[None]:
        """Matplotlib's settings for drawing the figure, with fonts for its texts."""
        return style(self.key, font_families(map(cleaned, self.texts)))

    @property
    def texts(self) -> set[str]:
        """The drawn texts that users choose."""
        columns = [self.data[name] for name in ("name", "at") if name in self.data]
        return {str(text) for column in columns for text in column}

    @cached_property
    def drawing(self) -> MplFigure:
        """Matplotlib's figure, drawn and laid out once for all formats.

        If boxes replace characters, a note below the picture says so.
        """
        with self.style():
            figure = self.draw()
            figure.draw_without_rendering()
            figure.set_layout_engine(None)  # the layout is final
            if missing_characters(self.texts):  # the note is outside of the layout
                y = -_NOTE_HEIGHT / 2 / figure.get_figheight()
                figure.text(0.5, y, BOXES_LINE, ha="center", va="center")
        return figure

    def _saved(self, kind: str, metadata: Mapping[Any, None], dpi: float) -> bytes:
        from matplotlib.transforms import Bbox

        figure, out = self.drawing, io.BytesIO()
        width, height = figure.get_size_inches()
        below = _NOTE_HEIGHT if missing_characters(self.texts) else 0.0
        area = Bbox.from_extents(0, -below, width, height) if below else None
        dpi = min(dpi, _MAX_PIXELS / max(width, height + below)) if kind == "png" else dpi
        with self.style():
            figure.savefig(out, format=kind, dpi=dpi, metadata=metadata, bbox_inches=area)
        return out.getvalue()


def write_figures(figures: Iterable[Figure], folder: Path) -> list[Path]:
    """Writes ``KEY.svg``, ``KEY.pdf``, ``KEY.png`` and ``KEY.csv`` for each figure.

    Args:
        figures: The figures.
        folder: Created if necessary; files of these names are replaced.

    Returns:
        The files, in order.

    Raises:
        OSError: If a file can't be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for figure in figures:
        for suffix in ("svg", "pdf", "png", "csv"):
            path = folder / f"{figure.key}.{suffix}"
            path.write_bytes(getattr(figure, suffix)())
            written.append(path)
    return written
