r"""How much of a table fits on a page of LaTeX: 16 cm by 24 cm in ``\scriptsize``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil

from ...errors import visible
from .formatting import Shown, columns_of, scored, shown
from .table import Column, Table, TableRow
from .tex import tex

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
        tall = _HEADS + sum(_tall(group, per_row) for group in _groups(piece.rows))
        if page and used + tall > _DOWN:
            yield page
            page, used = [], 0
        page.append(piece)
        used += tall
    yield page


def _pieces(table: Table, per_row: int, *, intervals: bool) -> Iterator[Piece]:
    for columns in _side_by_side(table, intervals=intervals):
        rows = [row for row in table.rows if any(section in row.counts for section in columns)]
        for lot in _lots(rows, per_row):
            yield Piece(columns=columns, rows=tuple(lot))


def _lots(rows: Sequence[TableRow], per_row: int) -> Iterator[list[TableRow]]:
    lot: list[TableRow] = []
    used = 0
    for group in _groups(rows):
        tall = _tall(group, per_row)
        if lot and used + tall > _DOWN - _HEADS:
            yield lot
            lot, used = [], 0
        lot += group
        used += tall
    yield lot


def _groups(rows: Sequence[TableRow]) -> Iterator[list[TableRow]]:
    """The rows of one tested model by one judge, whose name stands in the first alone."""
    for _, same in groupby(rows, key=lambda row: (row.judge, row.heads[0])):
        yield list(same)


def _tall(group: Sequence[TableRow], per_row: int) -> int:
    """Lines of a group; names too long for one go on, with less in each than it could hold."""
    heads = [group[0].heads[0], *(head for row in group for head in row.heads[1:])]
    more = sum(ceil(long(head) / (0.7 * _LONG)) - 1 for head in heads if long(head) > _LONG)
    return per_row * len(group) + more


def _side_by_side(table: Table, *, intervals: bool) -> Iterator[Lot]:
    """Columns in lots; a section goes on beside another only where all of it fits."""
    room = _ACROSS - sum(_GAP + min(_longest(table, i), _LONG) for i in range(len(table.heads)))
    lot: Lot = {}
    left = room
    for section in table.sections:
        counts = _GAP + max(long(scored(row, section)) for row in table.rows)
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
    return max(long(table.heads[i]), *(long(row.heads[i]) for row in table.rows))


def _divided(widths: Mapping[Column, float], room: float) -> Iterator[tuple[Column, ...]]:
    """The columns of a section, in parts of about as many where they don't fit side by side."""
    columns = tuple(widths)
    size = ceil(len(columns) / max(1, ceil(sum(widths.values()) / max(room, 1.0))))
    yield from (columns[at : at + size] for at in range(0, len(columns), size))


def _width(table: Table, column: Column, *, intervals: bool) -> float:
    texts = [shown_in(row, column) for row in table.rows]
    return _GAP + max(long(column.title), *(_wide(text, intervals=intervals) for text in texts))


def _wide(text: Shown, *, intervals: bool) -> float:
    """Of a cell: the figure and its denominator, or the interval below them."""
    above = 1.1 * long(text.value) + _TINY * long(text.of)
    return max(above, _TINY * long(text.interval)) if intervals else above


def long(text: str) -> float:
    """Width of a text in digits: as wide as most letters; capitals are wider, some marks narrow.

    Args:
        text: Any text; what LaTeX lacks stands by its number, which is wide.
    """
    return sum(map(_wide_as, visible(text)))


def _wide_as(c: str) -> float:
    if ord(c) > 255 and r"\ttfamily" in tex(c):
        return 6.5  # stands by its number
    return 0.55 if c in _NARROW else 1.4 if c.isupper() or ord(c) > 255 else 1.0
