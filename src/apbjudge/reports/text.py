"""A document as plain text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from ..errors import visible
from .document import Cell, Document, Figure, Heading, Notes, Paragraph, Table, packed

_GAP = "  "


def render_text(document: Document, *, width: int | None = None) -> str:
    """The document: parts with an empty line between, except below a heading.

    A figure is ``value [low, high] /n``, with ``*`` behind the value in the best set. Columns of a
    table beyond ``width`` characters continue below; None for no limit.
    """
    lines: list[str] = []
    is_below_heading = True
    for part in document:
        match part:
            case Heading(text) | Paragraph(text):
                body = [visible(text)]
            case Notes(texts):
                body = [*map(visible, texts)]
            case _:
                body = [*_table(part, width)]
        if body:
            lines += body if is_below_heading else ["", *body]
            is_below_heading = isinstance(part, Heading)
    return "\n".join(lines) + "\n"


def _table(table: Table, width: int | None) -> Iterator[str]:
    columns = [_column(table, i) for i in range(len(table.columns))]
    leads = columns[: table.leads]
    room = inf if width is None else width + len(_GAP) - sum(len(c[0]) + len(_GAP) for c in leads)
    sized = ((column, len(column[0]) + len(_GAP)) for column in columns[table.leads :])
    for block in [*packed(sized, room)] or [[]]:
        for line in zip(*leads, *block, strict=True):
            yield _GAP.join(line).rstrip()


def _column(table: Table, i: int) -> list[str]:
    """Title and cells of a column, all of one width."""
    column = table.columns[i]
    cells = [row[i] for row in table.rows]
    if column.align == "value":
        texts = _by_value(cells)
    else:
        texts = [
            visible(cell.marked("", "*") if isinstance(cell, Figure) else str(cell))
            for cell in cells
        ]
    lines = [visible(column.title), *texts]
    wide = max(map(len, lines))
    return [line.rjust(wide) if column.align == "right" else line.ljust(wide) for line in lines]


def _by_value(cells: Sequence[Cell]) -> list[str]:
    mark = " " if any(isinstance(cell, Figure) and cell.best for cell in cells) else ""
    parts = [
        (cell.value + ("*" if cell.best else mark), cell.interval, cell.of)
        if isinstance(cell, Figure)
        else (visible(str(cell)) + mark, "", "")
        for cell in cells
    ]
    wide = max((len(value) for value, _, _ in parts), default=0)
    return [" ".join(filter(None, (v.rjust(wide), ends, of))) for v, ends, of in parts]
