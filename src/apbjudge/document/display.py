"""Results that print as short text, and show in notebooks as HTML."""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape
from shutil import get_terminal_size
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .model import Document

LONGEST = 40
"""Lines that a result prints at most."""


class Shown(ABC):
    """A result that prints as the head of its text; ``text`` is all of it."""

    __slots__ = ()

    @abstractmethod
    def _printed(self) -> Document | str:
        """The printed form of the result."""

    @property
    def text(self) -> str:
        """All of the result as text, as wide as the terminal."""
        content = self._printed()
        if isinstance(content, str):
            return content
        from .text import render_text

        return render_text(content, width=get_terminal_size().columns)

    def __str__(self) -> str:
        lines = self.text.rstrip("\n").split("\n")
        if len(lines) > LONGEST:
            more = len(lines) - LONGEST + 1
            lines[LONGEST - 1 :] = [f"… {more} more lines: .text has all"]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        content = self._printed()
        if isinstance(content, str):
            return f"<pre>{escape(content)}</pre>"
        from .html import render_html

        return render_html(content)
