"""A figure: its picture, the data behind it, and what it shows in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .fonts import families_for
from .marks import drawn_texts
from .names import BOXES_LINE, cleaned, lacking
from .seam import Sheet, csv_bytes, png_bytes, style, svg_bytes

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Figure:
    """A figure for a paper; the same figure has the same bytes each time.

    Attributes:
        key: Name of its files, unique among the figures: ``a-z``, ``0-9`` and hyphens.
        title: What it shows, without a full stop; it is not drawn, a caption says it.
        alt: What is to be seen, for those who can't see it; one or two sentences.
        data: What is drawn, a line per figure: rates from 0 to 1, whole names, NaN or None
            where a figure has no interval, ``n`` rows behind it.
        draw: Draws it anew.
    """

    key: str
    title: str
    alt: str
    data: DataFrame
    draw: Callable[[], Sheet]

    def svg(self) -> bytes:
        """The figure as SVG; texts are outlines, and nothing outside the file is referred to."""
        with self._style():
            sheet, below = self.draw(), self._below
            return svg_bytes(sheet, key=self.key, title=self.title, alt=self.alt, below=below)

    def png(self, dpi: int = 300) -> bytes:
        """The figure as PNG.

        Args:
            dpi: Dots per inch, above 0; one longer than 30,000 dots gets fewer.
        """
        with self._style():
            return png_bytes(self.draw(), dpi=dpi, below=self._below)

    def _style(self) -> AbstractContextManager[None]:
        return style(self.key, families_for(map(cleaned, drawn_texts(self.data))))

    @property
    def _below(self) -> str:
        """What a picture that is alone must say itself; the title says more of it."""
        return BOXES_LINE if lacking(drawn_texts(self.data)) else ""


def write_figures(figures: Iterable[Figure], folder: Path) -> list[Path]:
    """Writes ``KEY.svg``, ``KEY.png`` and ``KEY.csv`` for each figure.

    Args:
        figures: The figures.
        folder: Where to; it is made if it is not there, and files of these names are replaced.

    Returns:
        The files, in order.

    Raises:
        OSError: If a file can't be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for figure in figures:
        parts = {"svg": figure.svg(), "png": figure.png(), "csv": csv_bytes(figure.data)}
        for ending, content in parts.items():
            path = folder / f"{figure.key}.{ending}"
            path.write_bytes(content)
            written.append(path)
    return written
