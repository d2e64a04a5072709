"""Names from data as they can be drawn: one line, glyphs that fonts have, room that there is."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from ...errors import visible
from .fonts import families_for, families_now, glyphs, text_width

_BOX = "\u25a1"
BOXES_LINE = f"{_BOX} stands for a character that no installed font has."
"""What a picture says of boxes; what they stand for it can't show. Fits the narrowest figure."""
_DOTS = "\u2026"
_LEFT_TO_RIGHT = "\u200e"
_MOST = 400  # characters that are measured at all
_NAMED = 10  # characters that a note lists
_SPELLED = (0, 7, 8, 9, 84, 91, 103, 107, 118, 122, 129, 130, 132)
"""Combining classes without which words of Indian and South-East Asian scripts are misspelt."""


def drawable(text: str) -> str:
    """Without anything that breaks lines or turns them, and a box for what all fonts lack."""
    known = glyphs(families_now())
    return "".join(c if ord(c) in known else _BOX for c in cleaned(text))


def cleaned(text: str) -> str:
    """A text in one line of bounded length, without marks that can be piled up."""
    clean = visible(text)
    if len(clean) > _MOST:
        clean = clean[: _MOST // 2] + _DOTS + clean[-_MOST // 2 :]
    return "".join(c for c in clean if unicodedata.combining(c) in _SPELLED)


def from_left(text: str) -> str:
    """A text whose parts stand from left to right, whatever script they are in."""
    turned = any(unicodedata.bidirectional(c) in {"R", "AL"} for c in text)
    return f"{_LEFT_TO_RIGHT}{text}" if turned else text


def lacking(texts: Iterable[str]) -> list[str]:
    """The characters that no installed font has, in order."""
    drawn = {c for text in texts for c in cleaned(text)}
    known = glyphs(families_for(drawn))
    return sorted(c for c in drawn if ord(c) not in known)


def boxes_note(texts: Iterable[str]) -> str:
    """Says which characters have boxes in their places, for a title; empty for none."""
    boxed = lacking(texts)
    if not boxed:
        return ""
    more = f" and {len(boxed) - _NAMED} more" if len(boxed) > _NAMED else ""
    return f"; no installed font has {' '.join(boxed[:_NAMED])}{more}: {_BOX} stands there"


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
