"""Names from data as figures show them: in one line, with fonts that have their characters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import Any

from ...errors import visible

OURS = "DejaVu Sans"  # comes with matplotlib: every machine has the same
FONT_SIZE = 7.0
BOXES_LINE = "\u25a1 replaces a character that no installed font has."
"""Note below a picture with boxes; it fits the narrowest figure."""

Families = tuple[str, ...]
_BOX, _DOTS = "\u25a1", "\u2026"
_MAX_CHARACTERS = 400
_MAX_LISTED = 10
_SPELLING = (0, 7, 8, 9, 84, 91, 103, 107, 118, 122, 129, 130, 132)
"""Combining classes without which words of Indian and South-East Asian scripts are misspelt."""


# Fonts -------------------------------------------------------------------------------------------


def font_families(texts: Iterable[str]) -> Families:
    """Matplotlib's ``font.family`` for texts: our font, then others for characters it lacks."""
    return _families(frozenset(map(ord, set[str]().union(*texts))) - characters((OURS,)))


@lru_cache(maxsize=64)
def _families(lacking: frozenset[int]) -> Families:
    from matplotlib import font_manager

    manager: Any = font_manager.fontManager
    chosen = [OURS]
    for font in sorted(
        manager.ttflist, key=lambda font: ("sans" not in font.name.lower(), font.name)
    ):
        looks = (font.style, font.variant, font.weight, font.stretch)
        # a "last resort" font has a picture of a box for every character
        if looks != ("normal", "normal", 400, "normal") or "last resort" in font.name.lower():
            continue
        if lacking and (own := _outlines(font.fname, lacking)):
            chosen.append(font.name)
            lacking -= own
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


# Characters --------------------------------------------------------------------------------------


def drawable(text: str) -> str:
    """A cleaned text with a box for each character that the current fonts lack."""
    known = characters(_current_families())
    return "".join(c if ord(c) in known else _BOX for c in cleaned(text))


def cleaned(text: str) -> str:
    """A text in one line of bounded length, without combining marks that can be stacked."""
    clean = visible(text)
    if len(clean) > _MAX_CHARACTERS:
        clean = clean[: _MAX_CHARACTERS // 2] + _DOTS + clean[-_MAX_CHARACTERS // 2 :]
    return "".join(c for c in clean if unicodedata.combining(c) in _SPELLING)


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


def labels(names: Iterable[str], most: int) -> dict[str, str]:
    """A unique label of at most ``most`` letters for each distinct name.

    Chinese characters and W count as two letters.
    """

    def label(name: str, suffix: str) -> str:
        return _shortened(drawable(name), most - len(suffix)) + suffix

    return _unique(names, label, " ({})")


def _unique(
    names: Iterable[str], text_of: Callable[[str, str], str], suffix: str
) -> dict[str, str]:
    """A text for each distinct name, with a numbered suffix if an earlier text is equal."""
    texts: dict[str, str] = {}
    for name in dict.fromkeys(names):
        candidates = (text_of(name, end) for end in ("", *map(suffix.format, range(2, 10_000))))
        texts[name] = next(text for text in candidates if text not in texts.values())
    return texts


def _shortened(text: str, most: int) -> str:
    """The text, with dots in its middle if it is too wide.

    Both ends matter: models of one family share the first part and differ in the last.
    """
    length, shown = len(text), text
    while (
        sum(2 if c in "MW@%" or unicodedata.east_asian_width(c) in "WF" else 1 for c in shown)
        > most
    ):
        length -= 1
        tail = length // 2
        shown = text[: length - tail] + _DOTS + (text[-tail:] if tail else "")
    return shown


def slugs(names: Iterable[str]) -> dict[str, str]:
    """A unique part of a file name for each name: ``a-z``, ``0-9`` and hyphens."""

    def slug(name: str, suffix: str) -> str:
        plain = unicodedata.normalize("NFKD", name[:_MAX_CHARACTERS])
        ascii_only = plain.encode("ascii", "ignore").decode().lower()
        base = re.sub(r"[^a-z0-9]+", "-", ascii_only).strip("-")[:40].strip("-")
        return (base or "judge") + suffix

    return _unique(names, slug, "-{}")


def in_words(name: str) -> str:
    """A name for a sentence: printable and at most 60 characters."""
    clean = visible(name)
    return clean if len(clean) <= 60 else f"{clean[:30]}{_DOTS}{clean[-29:]}"
