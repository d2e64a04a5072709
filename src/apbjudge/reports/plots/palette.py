"""Colours, markers, line styles and hatches; no two series differ by colour alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SeriesStyle:
    """Looks of a series of points; an ``open`` marker is filled with white."""

    colour: str
    marker: str
    dash: str | tuple[float, tuple[float, ...]]
    open: bool = False

    @property
    def marker_settings(self) -> dict[str, object]:
        """Settings of matplotlib's lines for the markers."""
        return {
            "marker": self.marker,
            "markersize": 4.0,
            "markerfacecolor": "#ffffff" if self.open else self.colour,
            "markeredgecolor": self.colour,
            "markeredgewidth": 0.9,
            "color": self.colour,
        }


@dataclass(frozen=True, slots=True)
class Fill:
    """Looks of a part of a bar; ``ink`` is the colour of text on it."""

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
"""Dark and lighter colours in turn, so that neighbours differ in grey too."""

FILLS = (
    Fill("#004488", "", "#ffffff"),
    Fill("#8fc1e3", "", "#000000"),
    Fill("#b3541e", "///", "#000000"),
    Fill("#ffffff", "...", "#000000"),
    Fill("#8a8a8a", "xxx", "#000000"),
    Fill("#f3e3b0", "\\\\\\", "#000000"),
)
"""Parts of a stacked bar, in order."""

INK = "#1c2024"
MUTED = "#596069"
RULE = "#dcdfe3"
CONTEXT = "#c3c7cc"


def series_style(index: int) -> SeriesStyle:
    """The style of a series; there are as many styles as series that may share a chart."""
    return STYLES[index % len(STYLES)]


def heat_colours() -> Any:
    """Matplotlib's map from 0 to 1 to colours of a heat map: the higher, the darker."""
    from matplotlib.colors import LinearSegmentedColormap

    shades = ["#ffffff", "#c6dbef", "#6baed6", "#2171b5", "#08306b"]
    return LinearSegmentedColormap.from_list("rates", shades)


def ink_on(colour: Any) -> str:
    """Black or white, whichever has more contrast (WCAG 2) with a colour of matplotlib."""
    from matplotlib.colors import to_rgb

    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in to_rgb(colour)
    )
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "#ffffff" if luminance < 0.179 else "#000000"
