"""Names from data as figures show them: with fonts that have their characters, in one line."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import Any

from ...errors import visible

OURS = "DejaVu Sans"  # comes with matplotlib: every machine has the same
FONT_SIZE = 7.0
BOXES_LINE = "\u25a1 replaces a character that no installed font has."
"""Note under a picture that has boxes; it fits the narrowest figure."""

Families = tuple[str, ...]
_BOX, _DOTS, _LEFT_TO_RIGHT = "\u25a1", "\u2026", "\u200e"
_MAX_CHARACTERS = 400
_MAX_LISTED = 10
_SPELLING = (0, 7, 8, 9, 84, 91, 103, 107, 118, 122, 129, 130, 132)
"""Combining classes without which words of Indian and South-East Asian scripts are misspelt."""


# Fonts -------------------------------------------------------------------------------------------


def font_families(texts: Iterable[str]) -> Families:
    """Matplotlib's ``font.family`` for texts: our font, then installed ones for what it lacks."""
    return _families(frozenset(map(ord, set[str]().union(*texts))) - characters((OURS,)))


@lru_cache(maxsize=64)
def _families(lacking: frozenset[int]) -> Families:
    from matplotlib import font_manager

    manager: Any = font_manager.fontManager
    coverage: dict[str, frozenset[int]] = {}
    for font in manager.ttflist if lacking else ():
        looks = (font.style, font.variant, font.weight, font.stretch)
        plain = looks == ("normal", "normal", 400, "normal")
        # a "last resort" font has a picture of a box for every character
        if plain and font.name not in coverage and "last resort" not in font.name.lower():
            coverage[font.name] = _outlines(font.fname, lacking)
    names = sorted(coverage, key=lambda name: ("sans" not in name.lower(), name))
    chosen = [OURS]
    while names:
        best = max(names, key=lambda name: len(coverage[name] & lacking))
        if not coverage[best] & lacking:
            break
        chosen.append(best)
        lacking -= coverage[best]
    return tuple(chosen)


def _outlines(path: str, wanted: frozenset[int]) -> frozenset[int]:
    """The characters that a font draws; an emoji may be a picture, which matplotlib can't draw."""
    from matplotlib import font_manager

    manager: Any = font_manager
    try:
        font = manager.get_font(path)
        own = wanted.intersection(font.get_charmap()) if font.scalable else ()
        font.set_size(FONT_SIZE, 72)
        return frozenset(one for one in own if font.load_char(one) and len(font.get_path()[0]))
    except (OSError, RuntimeError, ValueError):  # removed since matplotlib looked, or broken
        return frozenset()


@cache
def characters(families: Families) -> frozenset[int]:
    """The characters that fonts have together."""
    from matplotlib import font_manager

    manager: Any = font_manager
    properties = (manager.FontProperties(family=[family]) for family in families)
    fonts = (manager.get_font(manager.findfont(wanted)) for wanted in properties)
    return frozenset[int]().union(*(font.get_charmap() for font in fonts))


def _current_families() -> Families:
    import matplotlib

    return tuple(matplotlib.rcParams["font.family"])


def text_width(text: str) -> float:
    """Width of a text of the smallest size in the current fonts, in points."""
    return _text_width(text, _current_families())


@lru_cache(maxsize=4096)
def _text_width(text: str, families: Families) -> float:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family=families, size=FONT_SIZE)
    measures: Any = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(measures[0])


# Characters --------------------------------------------------------------------------------------


def drawable(text: str) -> str:
    """A cleaned text with a box for each character that the current fonts lack."""
    known = characters(_current_families())
    return "".join(c if ord(c) in known else _BOX for c in cleaned(text))


def cleaned(text: str) -> str:
    """A text in one line of bounded length, without marks that can be piled up."""
    clean = visible(text)
    if len(clean) > _MAX_CHARACTERS:
        clean = clean[: _MAX_CHARACTERS // 2] + _DOTS + clean[-_MAX_CHARACTERS // 2 :]
    return "".join(c for c in clean if unicodedata.combining(c) in _SPELLING)


def from_left(text: str) -> str:
    """A text whose parts run from left to right, whatever script they are in."""
    turned = any(unicodedata.bidirectional(c) in {"R", "AL"} for c in text)
    return f"{_LEFT_TO_RIGHT}{text}" if turned else text


def missing_characters(texts: Iterable[str]) -> list[str]:
    """The characters that no installed font has, in order."""
    wanted = {c for text in texts for c in cleaned(text)}
    known = characters(font_families(wanted))
    return sorted(c for c in wanted if ord(c) not in known)


def boxes_note(texts: Iterable[str]) -> str:
    """A note that lists the characters shown as boxes; empty for none."""
    missing = missing_characters(texts)
    if not missing:
        return ""
    more = f" and {len(missing) - _MAX_LISTED} more" if len(missing) > _MAX_LISTED else ""
    return f"no installed font has {' '.join(missing[:_MAX_LISTED])}{more}: shown as {_BOX}"


# Names -------------------------------------------------------------------------------------------


def labels(names: Iterable[str], room: float) -> dict[str, str]:
    """A label of at most ``room`` points for each distinct name, no two the same."""

    def label(name: str, suffix: str) -> str:
        return _shortened(drawable(name), room - (text_width(suffix) if suffix else 0)) + suffix

    return _unique(names, label, " ({})")


def _unique(
    names: Iterable[str], text_of: Callable[[str, str], str], suffix: str
) -> dict[str, str]:
    """A text of each distinct name, with a numbered suffix where an earlier one has the same."""
    texts: dict[str, str] = {}
    for name in dict.fromkeys(names):
        candidates = (text_of(name, end) for end in ("", *map(suffix.format, range(2, 10_000))))
        texts[name] = next(text for text in candidates if text not in texts.values())
    return texts


def _shortened(text: str, room: float) -> str:
    """The text, with dots in its middle where it is too wide.

    Both ends matter: models of one family share the first part and differ in the last.
    """

    def cut(length: int) -> str:
        tail = length // 2
        return text[: length - tail] + _DOTS + (text[-tail:] if tail else "")

    if text_width(text) <= room:
        return text
    fits = bisect_right(range(len(text)), room, key=lambda length: text_width(cut(length)))
    return cut(max(fits - 1, 0))


def slugs(names: Iterable[str]) -> dict[str, str]:
    """A part of a file name for each name, no two the same: ``a-z``, ``0-9`` and hyphens."""

    def slug(name: str, suffix: str) -> str:
        plain = unicodedata.normalize("NFKD", name[:_MAX_CHARACTERS])
        ascii_only = plain.encode("ascii", "ignore").decode().lower()
        base = re.sub(r"[^a-z0-9]+", "-", ascii_only).strip("-")[:40].strip("-")
        return (base or "judge") + suffix

    return _unique(names, slug, "-{}")


def in_words(name: str) -> str:
    """A name for a sentence: visible and at most 60 characters."""
    clean = visible(name)
    return clean if len(clean) <= 60 else f"{clean[:30]}{_DOTS}{clean[-29:]}"
