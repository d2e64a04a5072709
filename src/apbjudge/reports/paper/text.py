"""Tables as plain text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...errors import visible
from ..tables import lined_up
from .formatting import best_note, columns_of, held, percent, scored, shown
from .table import Column, Table, TableRow

WIDTH = 120
_GAP = 2


def tables_text(tables: Iterable[Table], *, width: int = WIDTH) -> str:
    """All tables: a block per judge and section, wide sections in several.

    A cell is ``value [low, high]``, with ``*`` after the value in the best set and ``/n`` where
    the denominator is not the section's scored rows, which stand beside the rows as
    ``scored/rows``. Rates are in percent, differences of rates in points.

    Args:
        tables: The tables.
        width: Columns that don't fit in so many characters go on below; one always fits.
    """
    return "\n\n".join("\n".join(_table(table, width)) for table in tables) + "\n"


def _table(table: Table, width: int) -> Iterator[str]:
    yield f"{table.title} ({table.number}; --table {table.key})"
    for judge in table.judges:
        for section in table.sections:
            rows = [row for row in table.rows if row.judge == judge and held(row, section)]
            if rows:
                yield ""
                yield from _block(table, judge, section, rows, width)
    yield ""
    yield f"value [{percent(table.level)} interval], /n where the denominator is not scored"
    notes = (best_note(table, "*"), *table.notes)
    yield from (visible(note) for note in notes if note)


def _block(
    table: Table, judge: str, section: str, rows: Sequence[TableRow], width: int
) -> Iterator[str]:
    title = ", ".join(filter(None, (f"judge {visible(judge)}" if judge else "", section)))
    if title:
        yield title
    leads = [
        [*table.heads, "scored"],
        *([*(visible(head) for head in row.heads), scored(row, section)] for row in rows),
    ]
    columns = [_column(column, rows) for column in columns_of(table, section)]
    for part in _folded(leads, columns, width):
        body = [[*lead, *cells] for lead, *cells in zip(leads, *part, strict=True)]
        yield from lined_up(body)


def _column(column: Column, rows: Sequence[TableRow]) -> list[str]:
    """A column's title and cells; values in line."""
    texts = [
        shown(row.cells.get(column.id), column, row.counts.get(column.section)) for row in rows
    ]
    values = [text.value + ("*" if text.best else " ") for text in texts]
    lead = max(len(value) for value in values)
    cells = [
        " ".join(filter(None, (value.rjust(lead), text.interval, text.of)))
        for value, text in zip(values, texts, strict=True)
    ]
    return [column.title, *cells]


def _folded(
    leads: Sequence[Sequence[str]], columns: Sequence[list[str]], width: int
) -> Iterator[list[list[str]]]:
    """The columns in lots that fit beside the leading ones."""
    taken = sum(max(map(len, lead)) + _GAP for lead in zip(*leads, strict=True))
    lot: list[list[str]] = []
    used = taken
    for column in columns:
        wide = max(map(len, column)) + _GAP
        if lot and used + wide - _GAP > width:
            yield lot
            lot, used = [], taken
        lot.append(column)
        used += wide
    yield lot
