"""A document as a fragment of HTML, to stand in a page."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ..errors import visible
from .document import Cell, Document, Figure, Heading, Notes, Paragraph, Part, Preformatted, Table


def render_html(document: Document) -> str:
    """The document; figures of the best set are in ``<strong>``, numbers of class ``num``."""
    parts: list[Part] = [*([Heading(document.title, 1)] if document.title else []), *document.parts]
    return "\n".join(line for part in parts for line in _part(part)) + "\n"


def _text(text: str) -> str:
    return escape(visible(text))


def _part(part: Part) -> Iterator[str]:
    match part:
        case Heading(text, level):
            yield f"<h{level}>{_text(text)}</h{level}>"
        case Paragraph(text):
            yield f"<p>{_text(text)}</p>"
        case Notes(lines):
            yield "<ul>"
            yield from (f"<li>{_text(line)}</li>" for line in lines)
            yield "</ul>"
        case Preformatted(text):
            lines = "\n".join(map(_text, text.splitlines()))
            yield f"<pre>{lines}</pre>"
        case _:
            yield from _table(part)


def _table(table: Table) -> Iterator[str]:
    yield "<table>"
    if table.caption:
        yield f"<caption>{_text(table.caption)}</caption>"
    heads = "".join(f'<th scope="col">{_text(column.title)}</th>' for column in table.columns)
    yield f"<thead><tr>{heads}</tr></thead>"
    yield "<tbody>"
    for row in table.rows:
        cells = zip(row, table.columns, strict=True)
        yield f"<tr>{''.join(_cell(cell, number=c.align != 'left') for cell, c in cells)}</tr>"
    yield "</tbody>"
    yield "</table>"


def _cell(cell: Cell, *, number: bool) -> str:
    text = _text(str(cell))
    if isinstance(cell, Figure) and cell.best:
        rest = f" {cell.interval} {cell.of}".rstrip()
        text = f"<strong>{_text(cell.value)}</strong>{_text(rest)}"
    return f'<td class="num">{text}</td>' if number else f"<td>{text}</td>"
