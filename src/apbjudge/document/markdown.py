"""A document as Markdown; no text from data is read as Markdown or HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..errors import visible
from .model import Document, Heading, MetricCell, Notes, Paragraph, Table

_SPECIAL = re.compile(r"([\\`*_\[\]<>|&~$#@]|:(?=[\w/+-]))")
_ADDRESS = re.compile(r"(?i)\bwww\.")


def render_markdown(document: Document) -> str:
    """The document; figures of the best set are bold, notes a list."""
    blocks: list[str] = []
    for part in document:
        match part:
            case Heading(text, level):
                blocks.append(f"{'#' * level} {plain(text)}")
            case Paragraph(text):
                blocks.append(plain(text))
            case Notes(lines):
                blocks.append("\n".join(f"- {plain(line)}" for line in lines))
            case _:
                blocks.append("\n".join(_table(part)))
    return "\n\n".join(filter(None, blocks)) + "\n"


def _table(table: Table) -> Iterator[str]:
    rules = ("---" if column.align == "left" else "---:" for column in table.columns)
    rows = (
        [
            cell.marked("**", "**") if isinstance(cell, MetricCell) else plain(str(cell))
            for cell in row
        ]
        for row in table.rows
    )
    for line in ([plain(column.title) for column in table.columns], rules, *rows):
        yield f"| {' | '.join(line)} |"


def plain(text: str) -> str:
    """Text that Markdown shows as it is: on one line, nothing in it a mark, link or tag."""
    escaped = _SPECIAL.sub(r"\\\1", visible(text)).strip()
    return _ADDRESS.sub(lambda match: f"{match[0][:-1]}\\.", escaped)
