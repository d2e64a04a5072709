"""A document as plain text for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from math import inf
from textwrap import wrap

from ..errors import visible
from .model import Cell, Document, Heading, MetricCell, Notes, Paragraph, Table, packed

WIDTH = 80
"""Characters of a line where nothing says how wide the terminal is."""
_GAP = "  "
_NARROWEST = 24


def render_text(
    document: Document, *, width: int | None = None, wraps: bool = True, colour: bool = False
) -> str:
    """The document: parts with an empty line between, except below a heading.

    A figure is ``value [low, high] /n``, with ``*`` behind the value in the best set. What is
    wider than ``width`` characters continues on further lines: texts and cells of columns that
    fold, otherwise whole columns of a table below the others. None for no limit. Without ``wraps``
    texts are one line each, as programs that search them expect. With ``colour`` headings and heads
    of columns are bold and intervals dim.
    """
    prose = width if wraps else None
    bold = _bold if colour else str
    lines: list[str] = []
    is_below_heading = True
    for part in document:
        match part:
            case Heading(text):
                body = [bold(line) for line in _wrapped(visible(text), prose)]
            case Paragraph(text):
                body = _wrapped(visible(text), prose)
            case Notes(texts):
                body = [line for text in texts for line in _wrapped(visible(text), prose, "  ")]
            case _:
                body = [*_table(part, width, colour=colour)]
        if body:
            lines += body if is_below_heading else ["", *body]
            is_below_heading = isinstance(part, Heading)
    return "\n".join(lines) + "\n"


def _wrapped(text: str, width: int | None, indent: str = "") -> list[str]:
    return (
        [text]
        if width is None
        else wrap(text, width, subsequent_indent=indent, break_on_hyphens=False)
    )


_INTERVAL = re.compile(r"(?<=\S) \[[^]]*\](?: /\d+)?| /\d+(?=\s|$)")


def _bold(line: str) -> str:
    return f"\x1b[1m{line}\x1b[0m" if line else line


def _dim(match: re.Match[str]) -> str:
    return f"\x1b[2m{match[0]}\x1b[0m"


def _table(table: Table, width: int | None, *, colour: bool) -> Iterator[str]:
    columns = [_column(table, i) for i in range(len(table.columns))]
    if width is not None and any(column.folds for column in table.columns):
        columns = _folded(columns, table, width)
    leads = columns[: table.leads]
    room = inf if width is None else width + len(_GAP) - sum(len(c[0]) + len(_GAP) for c in leads)
    sized = ((column, len(column[0]) + len(_GAP)) for column in columns[table.leads :])
    for block in [*packed(sized, room)] or [[]]:
        for i, line in enumerate(zip(*leads, *block, strict=True)):
            text = _GAP.join(line).rstrip()
            if colour:
                text = _INTERVAL.sub(_dim, text) if i else _bold(text)
            yield text


def _folded(columns: list[list[str]], table: Table, width: int) -> list[list[str]]:
    """The columns, those that fold in the room that the others leave; narrow ones first."""
    folding = [i for i, column in enumerate(table.columns) if column.folds]
    room = width + len(_GAP) - sum(len(column[0]) + len(_GAP) for column in columns)
    room += sum(len(columns[i][0]) for i in folding)
    widths = [len(column[0]) for column in columns]
    for n, i in enumerate(sorted(folding, key=widths.__getitem__)):
        widths[i] = min(widths[i], max(_NARROWEST, room // (len(folding) - n)))
        room -= widths[i]
    lines: list[tuple[str, ...]] = []
    for row in zip(*columns, strict=True):
        cells = [
            wrap(cell, wide, break_on_hyphens=False) if column.folds else [cell]
            for cell, wide, column in zip(row, widths, table.columns, strict=True)
        ]
        lines += (
            tuple(part.ljust(wide) for part, wide in zip(parts, widths, strict=True))
            for parts in zip_longest(*cells, fillvalue="")
        )
    return [list(column) for column in zip(*lines, strict=True)]


def _column(table: Table, i: int) -> list[str]:
    """Title and cells of a column, all of one width."""
    column = table.columns[i]
    cells = [row[i] for row in table.rows]
    if column.align == "value":
        texts = _by_value(cells)
    else:
        texts = [
            visible(cell.marked("", "*") if isinstance(cell, MetricCell) else str(cell))
            for cell in cells
        ]
    lines = [visible(column.title), *texts]
    wide = max(map(len, lines))
    return [line.rjust(wide) if column.align == "right" else line.ljust(wide) for line in lines]


def _by_value(cells: Sequence[Cell]) -> list[str]:
    mark = " " if any(isinstance(cell, MetricCell) and cell.best for cell in cells) else ""
    parts = [
        (cell.value + ("*" if cell.best else mark), cell.interval, cell.of)
        if isinstance(cell, MetricCell)
        else (visible(str(cell)) + mark, "", "")
        for cell in cells
    ]
    wide = max((len(value) for value, _, _ in parts), default=0)
    return [" ".join(filter(None, (v.rjust(wide), ends, of))) for v, ends, of in parts]
