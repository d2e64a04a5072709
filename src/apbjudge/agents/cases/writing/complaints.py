"""Complaints about texts that a model wrote, and helpers for rules of all kinds of texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...prediction.writing import Complaint, TextReading
from ..seeds import leaves


def reading(value: dict[str, Any], complaints: Iterable[Complaint]) -> TextReading:
    """An answer, without its value if there are complaints."""
    listed = tuple(complaints)
    return TextReading(None if listed else value, listed)


def text_of(value: object) -> str:
    """A text without blanks at its ends; empty for anything else."""
    return value.strip() if isinstance(value, str) else ""


def text_in(value: object) -> str:
    """The texts, numbers and names of fields in a JSON value."""
    return "\n".join(map(str, leaves(value, names=True)))


def length(name: str, text: str, *, most: int) -> Iterator[Complaint]:
    """Yields a complaint about a text that is empty or has more characters than allowed."""
    if not text:
        yield Complaint("empty", f'"{name}" is empty or no text.')
    elif len(text) > most:
        detail = f"The {name} has {len(text)} characters, more than the {most} allowed."
        yield Complaint("too long", detail)
