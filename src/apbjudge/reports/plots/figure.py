"""A figure: its picture, the data behind it, and a description in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from ...records.tables import text_cell
from .marks import Frame
from .matplotlib_backend import MplFigure, png_bytes, style, svg_bytes
from .text import BOXES_LINE, cleaned, font_families, missing_characters


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Figure:
    """A figure for a paper; the same figure has the same bytes each time.

    Attributes:
        key: Name of its files, unique among the figures: ``a-z``, ``0-9`` and hyphens.
        title: What it shows, without a full stop; a caption has it, the picture has not.
        alt: Text alternative: one or two sentences.
        data: A pandas DataFrame, a line per drawn value: rates from 0 to 1, whole names, NaN or
            None for ends of intervals that there are not, ``n`` rows behind the value.
        draw: Draws it anew with matplotlib.
    """

    key: str
    title: str
    alt: str
    data: Frame
    draw: Callable[[], MplFigure]

    def svg(self) -> bytes:
        """The figure as SVG; texts are outlines, and nothing outside the file is referred to."""
        with self.style():
            texts = {"key": self.key, "title": self.title, "alt": self.alt}
            return svg_bytes(self.draw(), note=self._note, **texts)

    def png(self, dpi: int = 300) -> bytes:
        """The figure as PNG.

        Args:
            dpi: Dots per inch, above 0; one longer than 30,000 dots gets fewer.
        """
        with self.style():
            return png_bytes(self.draw(), dpi=dpi, note=self._note)

    def csv(self) -> bytes:
        """The data as CSV; a missing value is empty."""
        text: str = self.data.map(text_cell).to_csv(index=False, lineterminator="\n")
        return text.encode()

    def style(self) -> AbstractContextManager[None]:
        """Matplotlib's settings while it is drawn, with fonts for its texts."""
        return style(self.key, font_families(map(cleaned, self.texts)))

    @property
    def texts(self) -> set[str]:
        """The drawn texts that users choose."""
        columns = [self.data[name] for name in ("name", "at") if name in self.data]
        return {str(text) for column in columns for text in column}

    @property
    def _note(self) -> str:
        """What a picture without its title must say itself."""
        return BOXES_LINE if missing_characters(self.texts) else ""


def write_figures(figures: Iterable[Figure], folder: Path) -> list[Path]:
    """Writes ``KEY.svg``, ``KEY.png`` and ``KEY.csv`` for each figure.

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
        parts = {"svg": figure.svg(), "png": figure.png(), "csv": figure.csv()}
        for suffix, content in parts.items():
            path = folder / f"{figure.key}.{suffix}"
            path.write_bytes(content)
            written.append(path)
    return written
