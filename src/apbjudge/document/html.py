"""A document as a fragment of HTML, for a page."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ..errors import visible
from .model import Cell, Document, Heading, MetricCell, Notes, Paragraph, Table
from .templating import environment


def render_html(document: Document) -> str:
    """The document; figures of the best set are in ``<strong>``, numbers of class ``num``."""
    lines: list[str] = []
    for part in document:
        match part:
            case Heading(text, level):
                lines.append(f"<h{level}>{_text(text)}</h{level}>")
            case Paragraph(text):
                lines.append(f"<p>{_text(text)}</p>")
            case Notes(texts):
                lines += ["<ul>", *(f"<li>{_text(text)}</li>" for text in texts), "</ul>"]
            case _:
                lines += _table(part)
    return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    return escape(visible(text))


def _table(table: Table) -> Iterator[str]:
    heads = "".join(f'<th scope="col">{_text(column.title)}</th>' for column in table.columns)
    yield f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>"
    for row in table.rows:
        cells = zip(row, table.columns, strict=True)
        yield f"<tr>{''.join(_cell(cell, number=c.align != 'left') for cell, c in cells)}</tr>"
    yield "</tbody>\n</table>"


def _cell(cell: Cell, *, number: bool) -> str:
    text = _text(str(cell))
    if isinstance(cell, MetricCell) and cell.best:
        text = cell.marked("<strong>", "</strong>")
    return f'<td class="num">{text}</td>' if number else f"<td>{text}</td>"


def document_page(title: str, document: Document) -> str:
    """A document as one HTML page that loads nothing."""
    template = environment().get_template("document.html.j2")
    return template.render(title=title, body=render_html(document))
