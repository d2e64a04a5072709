"""Results as text that is not broken at the terminal's width."""

from apbjudge.document.display import Shown
from apbjudge.document.model import Document
from apbjudge.document.text import WIDTH, render_text


def text_of(result: Shown) -> str:
    """The text, its tables at most ``WIDTH`` characters wide."""
    content = result._printed()
    return (
        render_text(content, width=WIDTH, wraps=False) if isinstance(content, Document) else content
    )
