r"""How much of a table fits on a page of LaTeX: 16 cm by 24 cm in ``\scriptsize``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil

from .formatting import Shown, columns_of, scored, shown
from .table import Column, Table, TableRow

_ACROSS = 104.0
"""Digits of the size of figures."""
_DOWN = 66
"""Lines, less a caption."""
_TINY = 0.86
_GAP = 0.95
_HEADS = 5
"""Lines that the rules and titles of a tabular take."""
_LONG = 34.0
"""Digits that fit into 4.5 cm."""
_NARROW = frozenset(" .,:;/|[]()!'ijlt-")

Lot = dict[str, tuple[Column, ...]]
"""Columns that stand side by side, by section."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One tabular.

    Attributes:
        columns: Its columns of figures, by section.
        rows: Its rows.
    """

    columns: Lot
    rows: tuple[TableRow, ...]


def shown_in(row: TableRow, column: Column) -> Shown:
    """A cell as texts."""
    return shown(row.cells.get(column.id), column, row.counts.get(column.section))


def pages(table: Table, *, intervals: bool) -> Iterator[list[Piece]]:
    """The tabulars of a table, those that fit on one page together.

    A section that is wider than a page is divided; the rows of one tested model by one judge are
    not.

    Args:
        table: The table.
        intervals: Whether intervals stand in lines of their own.
    """
    per_row = 2 if intervals else 1
    page: list[Piece] = []
    used = 0
    for piece in _pieces(table, per_row, intervals=intervals):
        tall = _HEADS + per_row * len(piece.rows)
        if page and used + tall > _DOWN:
            yield page
            page, used = [], 0
        page.append(piece)
        used += tall
    yield page


def _pieces(table: Table, per_row: int, *, intervals: bool) -> Iterator[Piece]:
    for columns in _side_by_side(table, intervals=intervals):
        rows = [row for row in table.rows if any(section in row.counts for section in columns)]
        for lot in _lots(rows, (_DOWN - _HEADS) // per_row):
            yield Piece(columns=columns, rows=tuple(lot))


def _lots(rows: Sequence[TableRow], most: int) -> Iterator[list[TableRow]]:
    lot: list[TableRow] = []
    for _, same in groupby(rows, key=lambda row: (row.judge, row.heads[0])):
        group = list(same)
        if lot and len(lot) + len(group) > most:
            yield lot
            lot = []
        lot += group
    yield lot


def _side_by_side(table: Table, *, intervals: bool) -> Iterator[Lot]:
    """Columns in lots; a section goes on beside another only where all of it fits."""
    room = _ACROSS - sum(_GAP + min(_longest(table, i), _LONG) for i in range(len(table.heads)))
    lot: Lot = {}
    left = room
    for section in table.sections:
        counts = _GAP + max(_long(scored(row, section)) for row in table.rows)
        widths = {c: _width(table, c, intervals=intervals) for c in columns_of(table, section)}
        for columns in _divided(widths, room - counts):
            needed = counts + sum(widths[column] for column in columns)
            if lot and (section in lot or needed > left):
                yield lot
                lot, left = {}, room
            lot[section] = columns
            left -= needed
    yield lot


def head_layout(table: Table, i: int) -> str:
    """How a leading column is laid out: names that are too long go on in another line."""
    return "l" if _longest(table, i) <= _LONG else "p{4.5cm}"


def _longest(table: Table, i: int) -> float:
    return max(_long(table.heads[i]), *(_long(row.heads[i]) for row in table.rows))


def _divided(widths: Mapping[Column, float], room: float) -> Iterator[tuple[Column, ...]]:
    """The columns of a section, in parts of about as many where they don't fit side by side."""
    columns = tuple(widths)
    size = ceil(len(columns) / max(1, ceil(sum(widths.values()) / max(room, 1.0))))
    yield from (columns[at : at + size] for at in range(0, len(columns), size))


def _width(table: Table, column: Column, *, intervals: bool) -> float:
    texts = [shown_in(row, column) for row in table.rows]
    return _GAP + max(_long(column.title), *(_wide(text, intervals=intervals) for text in texts))


def _wide(text: Shown, *, intervals: bool) -> float:
    """Of a cell: the figure and its denominator, or the interval below them."""
    above = 1.1 * _long(text.value) + _TINY * _long(text.of)
    return max(above, _TINY * _long(text.interval)) if intervals else above


def _long(text: str) -> float:
    """In digits, as wide as most letters; capitals are wider, and some marks narrow."""
    return sum(0.55 if c in _NARROW else 1.4 if c.isupper() or ord(c) > 255 else 1.0 for c in text)
