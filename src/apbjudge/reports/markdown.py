"""A document as Markdown; no text from data is read as Markdown or HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ..errors import visible
from .document import Cell, Document, Figure, Heading, Notes, Paragraph, Part, Preformatted, Table

_SPECIAL = re.compile(r"([\\`*_\[\]<>|&~$#@]|:(?=[\w/+-]))")
_ADDRESS = re.compile(r"(?i)\bwww\.")


def render_markdown(document: Document) -> str:
    """The document; figures of the best set are bold, notes a list."""
    parts: list[Part] = [*([Heading(document.title, 1)] if document.title else []), *document.parts]
    blocks = ("\n".join(_part(part)) for part in parts)
    return "\n\n".join(block for block in blocks if block) + "\n"


def _part(part: Part) -> Iterator[str]:
    match part:
        case Heading(text, level):
            yield f"{'#' * level} {plain(text)}"
        case Paragraph(text):
            yield plain(text)
        case Notes(lines):
            yield from (f"- {plain(line)}" for line in lines)
        case Preformatted(text):
            yield from (f"    {visible(line)}" for line in text.splitlines())
        case _:
            yield from _table(part)


def _table(table: Table) -> Iterator[str]:
    yield _line(plain(column.title) for column in table.columns)
    yield _line("---" if column.align == "left" else "---:" for column in table.columns)
    for row in table.rows:
        yield _line(map(_cell, row))


def _cell(cell: Cell) -> str:
    if not isinstance(cell, Figure):
        return plain(str(cell))
    value = f"**{cell.value}**" if cell.best else cell.value
    return " ".join(filter(None, (value, cell.interval, cell.of)))


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def table(heads: Sequence[str], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """The lines of a Markdown table of plain texts."""
    return list(_table(Table.of(heads, rows)))


def plain(text: str) -> str:
    r"""Text that Markdown shows as it is: on one line, nothing in it a mark, link or tag.

    Args:
        text: Any text; what can't be printed comes out escaped, such as a line break as ``\n``.
    """
    escaped = _SPECIAL.sub(r"\\\1", visible(text)).strip()
    return _ADDRESS.sub(lambda found: f"{found[0][:-1]}\\.", escaped)
