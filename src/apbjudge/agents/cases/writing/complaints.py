"""Complaints about texts that a model wrote, and what rules of all kinds of texts share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..seeds import leaves


class Complaint(NamedTuple):
    """A reason against a text: a code to be counted, and a sentence for the model."""

    code: str
    text: str


class TextReading(NamedTuple):
    """The content of a reply.

    Attributes:
        value: The text or texts by name; None where there are none. Of several tools only those
            without a complaint.
        complaints: Broken rules; none if all is accepted.
    """

    value: dict[str, Any] | None
    complaints: tuple[Complaint, ...]


def reading(value: dict[str, Any], complaints: Iterable[Complaint]) -> TextReading:
    """An answer, without its value where there are complaints."""
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
