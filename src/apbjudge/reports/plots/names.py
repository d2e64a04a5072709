"""Names from data as they can be drawn: one line, glyphs that the font has, room that there is."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from ...errors import visible
from .seam import glyphs, text_width

_BOX = "\u25a1"
_DOTS = "\u2026"
_MOST = 400  # characters that are measured at all


def drawable(text: str) -> str:
    """Without anything that breaks lines or turns them, and a box for what the font lacks."""
    clean = visible(text)
    if len(clean) > _MOST:
        clean = clean[: _MOST // 2] + _DOTS + clean[-_MOST // 2 :]
    known = glyphs()
    return "".join(c if ord(c) in known else _BOX for c in clean if not unicodedata.combining(c))


def labels(names: Sequence[str], room: float) -> dict[str, str]:
    """A short label for each name, no two the same.

    Args:
        names: The names, each once.
        room: Width that a label may have, in points.
    """
    found: dict[str, str] = {}
    for name in names:
        label, number = _shortened(drawable(name), room), 1
        while label in found.values():
            number += 1
            mark = f" ({number})"
            label = _shortened(drawable(name), room - text_width(mark)) + mark
        found[name] = label
    return found


def _shortened(text: str, room: float) -> str:
    """The text, with dots in its middle where it is too wide."""
    if text_width(text) <= room:
        return text
    fits, too_long = 0, len(text)
    while too_long - fits > 1:
        kept = (fits + too_long) // 2
        fits, too_long = (kept, too_long) if _fits(text, kept, room) else (fits, kept)
    return _cut(text, fits)


def _fits(text: str, kept: int, room: float) -> bool:
    return text_width(_cut(text, kept)) <= room


def _cut(text: str, kept: int) -> str:
    """The ends of a text; both matter, since families share the first and sizes the last."""
    tail = kept // 2
    return text[: kept - tail] + _DOTS + (text[-tail:] if tail else "")


def slugs(names: Sequence[str]) -> dict[str, str]:
    """A part of a file name for each name, no two the same: ``a-z``, ``0-9`` and hyphens."""
    found: dict[str, str] = {}
    for name in names:
        plain = unicodedata.normalize("NFKD", name[:_MOST]).encode("ascii", "ignore").decode()
        base = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:40].strip("-") or "judge"
        slug, number = base, 1
        while slug in found.values():
            number += 1
            slug = f"{base}-{number}"
        found[name] = slug
    return found


def in_words(name: str) -> str:
    """A name for a sentence: visible and at most 60 characters."""
    clean = visible(name)
    return clean if len(clean) <= 60 else f"{clean[:30]}{_DOTS}{clean[-29:]}"
