"""A document as a fragment of HTML, for a page."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ..errors import visible
from ..statistics.estimates import Estimate
from .model import Cell, Document, Heading, MetricCell, Notes, Paragraph, Plot, Table
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
    numbers = ["" if column.align == "left" else ' class="num"' for column in table.columns]
    heads = "".join(
        f'<th scope="col"{number}>{_text(column.title)}</th>'
        for column, number in zip(table.columns, numbers, strict=True)
    )
    yield '<div class="box" tabindex="0" role="region" aria-label="Table">'
    yield f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>"
    for row in table.rows:
        cells = zip(row, numbers, strict=True)
        yield f"<tr>{''.join(f'<td{number}>{_cell(cell)}</td>' for cell, number in cells)}</tr>"
    yield "</tbody>\n</table>\n</div>"


def _cell(cell: Cell) -> str:
    if not isinstance(cell, MetricCell):
        return _text(str(cell))
    text = cell.marked("<strong>", "</strong>")
    return text if cell.plot is None else text + interval_plot(cell.estimate, cell.plot)


def interval_plot(of: Estimate, plot: Plot) -> str:
    """An estimate on its axis, before the range that it may lie in."""
    low, high = plot.axis

    def at(value: float) -> float:
        return round(100 * min(1.0, max(0.0, (value - low) / (high - low))), 2)

    bars = [("allowed", at(plot.allowed[0]), at(plot.allowed[1]), 0, 10)]
    if of.low is not None and of.high is not None:
        bars.append(("range", at(of.low), at(of.high), 3, 4))
    if of.value is not None:
        bars.append(("value", at(of.value), at(of.value), 1, 8))
    shapes = "".join(
        f'<rect class="{name}" x="{start}%" width="{max(end - start, 0.8):.2f}%" y="{top}" '
        f'height="{height}"/>'
        for name, start, end, top, height in bars
    )
    return f'<svg class="plot" height="10" aria-hidden="true">{shapes}</svg>'


def document_page(title: str, document: Document) -> str:
    """A document as one HTML page that loads nothing."""
    template = environment().get_template("document.html.j2")
    return template.render(title=title, body=render_html(Document(document.parts)))
