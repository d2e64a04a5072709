"""Colours, markers, line styles and hatches; no two series differ by colour alone."""

from __future__ import annotations

from dataclasses import dataclass

Dash = str | tuple[float, tuple[float, ...]]
Colour = tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How a series of points is told from its neighbours.

    Attributes:
        colour: Of marker, line and whisker.
        marker: Shape of the points.
        dash: Style of the line between them.
        open: Whether the marker is filled with white.
    """

    colour: str
    marker: str
    dash: Dash
    open: bool = False

    @property
    def face(self) -> str:
        """What the marker is filled with."""
        return "#ffffff" if self.open else self.colour


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """How a part of a bar is told from its neighbours.

    Attributes:
        colour: Of the area.
        hatch: Drawn over it; empty for none.
        ink: Of text on it.
    """

    colour: str
    hatch: str
    ink: str


STYLES = (
    Style(colour="#004488", marker="o", dash="-"),
    Style(colour="#d55e00", marker="s", dash=(0, (4, 1.5)), open=True),
    Style(colour="#000000", marker="^", dash=(0, (1, 1))),
    Style(colour="#008f68", marker="D", dash=(0, (5, 1, 1, 1)), open=True),
    Style(colour="#6b1f7a", marker="v", dash="-"),
    Style(colour="#2b8cc4", marker="P", dash=(0, (4, 1.5))),
    Style(colour="#6e3b00", marker="X", dash=(0, (1, 1))),
    Style(colour="#c4628f", marker="p", dash=(0, (5, 1, 1, 1)), open=True),
)
"""Dark and lighter colours in turn, so that neighbours differ in grey too."""

FILLS = (
    Fill(colour="#004488", hatch="", ink="#ffffff"),
    Fill(colour="#8fc1e3", hatch="", ink="#000000"),
    Fill(colour="#b3541e", hatch="///", ink="#000000"),
    Fill(colour="#ffffff", hatch="...", ink="#000000"),
    Fill(colour="#8a8a8a", hatch="xxx", ink="#000000"),
    Fill(colour="#f3e3b0", hatch="\\\\\\", ink="#000000"),
)
"""Parts of a stacked bar, in order."""

INK = "#1c2024"
MUTED = "#596069"
RULE = "#dcdfe3"
CONTEXT = "#c3c7cc"
_SHADES = ("#ffffff", "#c6dbef", "#6baed6", "#2171b5", "#08306b")


def shade(share: float) -> str:
    """The colour of a heat map's cell: the darker, the higher.

    Args:
        share: 0 to 1.
    """
    at = min(1.0, max(0.0, share)) * (len(_SHADES) - 1)
    first = min(int(at), len(_SHADES) - 2)
    low, high = rgb(_SHADES[first]), rgb(_SHADES[first + 1])
    mixed = (a + (at - first) * (b - a) for a, b in zip(low, high, strict=True))
    return "#" + "".join(f"{round(255 * part):02x}" for part in mixed)


def ink_on(colour: str) -> str:
    """Black or white, whichever is easier to read on a colour."""
    return max(("#000000", "#ffffff"), key=lambda ink: contrast(ink, colour))


def contrast(one: str, other: str) -> float:
    """Contrast ratio of WCAG 2, 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    """Relative luminance of an sRGB colour, 0 to 1."""
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def linear(colour: str) -> Colour:
    """The three channels in proportion to light, 0 to 1."""
    red, green, blue = rgb(colour)
    return _linear(red), _linear(green), _linear(blue)


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4


def rgb(colour: str) -> Colour:
    """The three channels of ``#rrggbb``, 0 to 1."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue
