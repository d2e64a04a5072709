"""Series are told apart in grey, which whoever is colour-blind sees at least."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb

from apbjudge.reports.plots.axes import FILLS, STYLES, heat_colours, ink_on


def light(colour: Any) -> float:
    """Relative luminance of a colour (sRGB), 0 to 1."""
    parts = np.array(to_rgb(colour))
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one: Any, other: Any) -> float:
    """Contrast ratio of WCAG 2, 1 to 21."""
    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def lightness(colour: Any) -> float:
    """L* of CIE 1976, 0 to 100."""
    return float(116 * np.cbrt(light(colour)) - 16)  # beyond the linear part near black


def test_neighbours_differ_in_grey_and_no_two_series_by_colour_alone() -> None:
    for one, other in [*pairwise(STYLES), *pairwise(FILLS)]:
        assert abs(lightness(one.colour) - lightness(other.colour)) > 15, (one, other)
    for one, other in combinations(STYLES, 2):
        assert one.marker != other.marker
    for one, other in pairwise(STYLES):
        assert one.dash != other.dash
    for one, other in combinations(FILLS, 2):
        far = abs(lightness(one.colour) - lightness(other.colour)) > 30
        assert far or one.hatch != other.hatch


def test_cells_darken_steadily_and_their_numbers_can_be_read() -> None:
    shades = [heat_colours()(step / 50) for step in range(51)]
    assert all(lightness(high) > lightness(low) for high, low in pairwise(shades))
    assert all(contrast(ink_on(colour), colour) >= 4.5 for colour in shades)
