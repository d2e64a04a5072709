"""Series are told apart in grey and by the colour-blind."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from apbjudge.reports.plots.axes import FILLS, STYLES, heat_colours, ink_on

# Complete lack of one kind of cone: Machado, Oliveira & Fernandes 2009,
# doi:10.1109/TVCG.2009.113, applied to channels in proportion to light.
SIGHTS = {
    "usual": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
    "grey": np.tile([0.2126, 0.7152, 0.0722], (3, 1)),
}
XYZ = np.array(
    [
        [0.4124, 0.3576, 0.1805],
        [0.2126, 0.7152, 0.0722],
        [0.0193, 0.1192, 0.9505],
    ]
)


def linear(colour: Any) -> np.ndarray:
    """The channels of a colour in proportion to light, 0 to 1 (sRGB)."""
    parts = np.array(to_rgb(colour))
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one: Any, other: Any) -> float:
    """Contrast ratio of WCAG 2, 1 to 21."""
    low, high = sorted(float(SIGHTS["grey"][0] @ linear(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab(colour: Any, sight: str) -> np.ndarray:
    """CIE L*a*b* as seen with this sight, white D65."""
    seen = np.clip(SIGHTS[sight] @ linear(colour), 0, 1)
    xyz = XYZ @ seen / (XYZ @ np.ones(3))
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(one: str, other: str, sight: str) -> float:
    return float(np.linalg.norm(lab(one, sight) - lab(other, sight)))


@pytest.mark.parametrize("sight", SIGHTS)
def test_neighbours_differ_in_colour_whoever_looks(sight: str) -> None:
    for one, other in [*pairwise(STYLES), *pairwise(FILLS)]:
        assert distance(one.colour, other.colour, sight) > 15, (one, other)


def test_no_two_series_differ_by_colour_alone() -> None:
    for one, other in combinations(STYLES, 2):
        assert one.marker != other.marker
    for one, other in pairwise(STYLES):
        assert one.dash != other.dash
        assert one.open or other.open or one.dash != other.dash
    for one, other in combinations(FILLS, 2):
        far = distance(one.colour, other.colour, "grey") > 30
        assert far or one.hatch != other.hatch


def test_cells_darken_steadily_and_their_numbers_can_be_read() -> None:
    shades = [heat_colours()(step / 50) for step in range(51)]
    lightness = [lab(colour, "grey")[0] for colour in shades]
    assert all(high > low for high, low in pairwise(lightness))
    assert all(contrast(ink_on(colour), colour) >= 4.5 for colour in shades)
