"""A document as plain text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..errors import visible
from .document import Cell, Document, Figure, Heading, Notes, Paragraph, Part, Preformatted, Table

_GAP = "  "


def render_text(document: Document, *, width: int | None = None) -> str:
    """The document: parts with an empty line between, except below a heading.

    A figure is ``value [low, high] /n``, with ``*`` behind the value in the best set.

    Args:
        document: The document.
        width: Columns of a table beyond so many characters continue below; None for no limit.
    """
    parts: list[Part] = [*([Heading(document.title, 1)] if document.title else []), *document.parts]
    lines: list[str] = []
    for i, part in enumerate(parts):
        body = list(_part(part, width))
        if not body:
            continue
        if lines and not isinstance(parts[i - 1], Heading):
            lines.append("")
        lines += body
    return "\n".join(lines) + "\n"


def _part(part: Part, width: int | None) -> Iterator[str]:
    match part:
        case Heading(text) | Paragraph(text):
            yield visible(text)
        case Notes(lines):
            yield from map(visible, lines)
        case Preformatted(text):
            yield from map(visible, text.splitlines())
        case _:
            yield from table_lines(part, width)


def table_lines(table: Table, width: int | None = None) -> Iterator[str]:
    """The lines of a table.

    Args:
        table: The table.
        width: See ``render_text``; one column always fits beside the leading ones.
    """
    columns = [_column(table, i) for i in range(len(table.columns))]
    leads, rest = columns[: table.leads], columns[table.leads :]
    taken = sum(len(column[0]) + len(_GAP) for column in leads)
    lot: list[list[str]] = []
    used = taken
    for column in rest:
        wide = len(column[0]) + len(_GAP)
        if lot and width is not None and used + wide - len(_GAP) > width:
            yield from _joined([*leads, *lot])
            lot, used = [], taken
        lot.append(column)
        used += wide
    yield from _joined([*leads, *lot])


def _joined(columns: Sequence[Sequence[str]]) -> Iterator[str]:
    return (_GAP.join(line).rstrip() for line in zip(*columns, strict=True))


def _column(table: Table, i: int) -> list[str]:
    """Title and cells of a column, all of one width."""
    column = table.columns[i]
    cells = [row[i] for row in table.rows]
    if column.align == "value":
        texts = _by_value(cells)
    else:
        texts = [visible(_marked(cell)) for cell in cells]
    lines = [visible(column.title), *texts]
    wide = max(map(len, lines))
    return [line.rjust(wide) if column.align == "right" else line.ljust(wide) for line in lines]


def _marked(cell: Cell) -> str:
    if isinstance(cell, Figure) and cell.best:
        return " ".join(filter(None, (f"{cell.value}*", cell.interval, cell.of)))
    return str(cell)


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
