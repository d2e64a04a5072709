"""Fonts: ours draws what it has, and installed ones draw what it lacks.

Names of tested models may be in any script, and no font has them all.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any

OURS = "DejaVu Sans"  # comes with matplotlib: every machine has the same
SMALL = 7.0

Families = tuple[str, ...]


def families_for(texts: Iterable[str]) -> Families:
    """Our font, and after it as few installed ones as have what it lacks.

    Args:
        texts: What is to be drawn.
    """
    return OURS, *_others(frozenset(map(ord, set[str]().union(*texts))) - glyphs())


def families_now() -> Families:
    """The fonts that texts are drawn with at the moment, ours first."""
    import matplotlib

    now: Families = tuple(matplotlib.rcParams["font.family"])
    return now if now[:1] == (OURS,) else (OURS,)


@cache
def glyphs(families: Families = (OURS,)) -> frozenset[int]:
    """The characters that the fonts have together."""
    return frozenset[int]().union(*(_font(family).get_charmap() for family in families))


def text_width(text: str) -> float:
    """Width of a text of the smallest size, in points."""
    return _width(text, families_now())


@lru_cache(maxsize=4096)
def _width(text: str, families: Families) -> float:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family=families, size=SMALL)
    measured: Any = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(measured[0])


@lru_cache(maxsize=64)
def _others(lacking: frozenset[int]) -> Families:
    """The same ones each time, as long as the same fonts are installed."""
    held = [(family, _drawn(family, lacking)) for family in _candidates(lacking)]
    found: list[str] = []
    while any(has for _, has in held):
        best, done = max(held, key=lambda one: len(one[1]))  # of equals the first
        found.append(best)
        held = [(family, has - done) for family, has in held]
    return tuple(found)


def _candidates(lacking: frozenset[int]) -> list[str]:
    """Families with upright fonts of normal weight that have some of the characters, best first."""
    from matplotlib import font_manager

    manager: Any = font_manager.fontManager
    found: set[str] = set()
    for entry in manager.ttflist if lacking else ():
        plain = (entry.style, entry.variant, entry.weight) == ("normal", "normal", 400)
        # a last resort has a picture of a box for everything
        if plain and "last resort" not in entry.name.lower() and _has(entry.fname, lacking):
            found.add(entry.name)
    return sorted(found - {OURS}, key=lambda name: ("sans" not in name.lower(), name))


def _has(path: str, characters: frozenset[int]) -> bool:
    from matplotlib import font_manager

    fonts: Any = font_manager
    try:
        return not characters.isdisjoint(fonts.get_font(path).get_charmap())
    except (OSError, RuntimeError):  # gone since matplotlib looked, or broken
        return False


def _drawn(family: str, characters: frozenset[int]) -> frozenset[int]:
    """Those of the characters that a family really draws: an emoji may be a picture instead."""
    try:
        font = _font(family)
        own = sorted(characters.intersection(font.get_charmap())) if font.scalable else []
        return frozenset(one for one in own if _has_outline(font, one))
    except (OSError, RuntimeError, ValueError):
        return frozenset()


def _has_outline(font: Any, character: int) -> bool:
    font.set_size(SMALL, 72)
    font.load_char(character)
    return len(font.get_path()[0]) > 0


def _font(family: str) -> Any:
    """The font that matplotlib draws a family with."""
    from matplotlib import font_manager

    fonts: Any = font_manager
    wanted = fonts.FontProperties(family=family)
    found = fonts.findfont(wanted, fallback_to_default=False, rebuild_if_missing=False)
    return fonts.get_font(found)
