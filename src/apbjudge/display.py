"""Results that print as short text, and show in notebooks as HTML."""

from __future__ import annotations

from html import escape
from pkgutil import resolve_name
from shutil import get_terminal_size
from typing import Any, ClassVar

LONGEST = 40
"""Lines that a result prints at most."""


class Shown:
    """A result that prints as the head of its text; ``text`` is all of it.

    Attributes:
        shown_by: The function below ``apbjudge`` that makes a ``Document`` or a text of it. Results
            are below the reports, which are looked up by name when one is shown.
        shown_part: The attribute that it takes; empty where it takes the result.
    """

    __slots__ = ()

    shown_by: ClassVar[str]
    shown_part: ClassVar[str] = ""

    def _shown(self) -> Any:
        part = getattr(self, self.shown_part) if self.shown_part else self
        return _named(self.shown_by)(part)

    @property
    def text(self) -> str:
        """All of the result as text, as wide as the terminal."""
        content = self._shown()
        if isinstance(content, str):
            return content
        return _named("document.text:render_text")(content, width=get_terminal_size().columns)

    def __str__(self) -> str:
        lines = self.text.rstrip("\n").split("\n")
        if len(lines) > LONGEST:
            more = len(lines) - LONGEST + 1
            lines[LONGEST - 1 :] = [f"… {more} more lines: .text has all"]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        content = self._shown()
        if isinstance(content, str):
            return f"<pre>{escape(content)}</pre>"
        return _named("document.html:render_html")(content)


def _named(name: str) -> Any:
    return resolve_name(f"apbjudge.{name}")
