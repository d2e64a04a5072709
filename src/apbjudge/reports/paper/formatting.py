"""How figures of the paper's tables read, and the tables as text and Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from .. import document, numbers
from ..document import Document, Heading, Notes, Part
from ..markdown import render_markdown
from ..numbers import DASH, level_text
from ..text import render_text
from .table import Cell, Column, Counts, Table, TableRow

WIDTH = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A cell as texts.

    Attributes:
        value: The figure, a dash where there is none.
        interval: ``[low, high]``; empty where there is none.
        of: ``/n`` where the denominator is not the section's scored rows; empty otherwise.
        best: Whether it is in the best set.
    """

    value: str
    interval: str = ""
    of: str = ""
    best: bool = False


def shown(cell: Cell | None, column: Column, counts: Counts | None) -> Shown:
    """A cell as texts.

    Args:
        cell: The cell; None where the row has no such figure.
        column: Its column.
        counts: The rows behind the section; None where the row has none.
    """
    if cell is None:
        return Shown(value=DASH)
    found = _figure(cell, column, counts)
    value = numbers.number(cell.estimate.value, column.unit)
    return Shown(value=value, interval=found.interval, of=found.of, best=found.best)


def _figure(cell: Cell, column: Column, counts: Counts | None) -> document.Figure:
    of = cell.estimate
    alone = counts is not None and counts.scored == of.n_items
    return document.Figure(
        estimate=of,
        unit=column.unit,
        best=bool(cell.best),
        denominator=not alone and of.value is not None,
    )


def scored(row: TableRow, section: str) -> str:
    """``scored/rows`` of a row's section; a dash where it has none."""
    counts = row.counts.get(section)
    return DASH if counts is None else f"{counts.scored}/{counts.rows}"


def held(row: TableRow, section: str) -> bool:
    """Whether a row says anything of a section."""
    return section in row.counts


def columns_of(table: Table, section: str) -> tuple[Column, ...]:
    """The columns of a section."""
    return tuple(column for column in table.columns if column.section == section)


def has_best(table: Table) -> bool:
    """Whether anything is marked."""
    return any(cell.best for row in table.rows for cell in row.cells.values())


def best_note(table: Table, mark: str) -> str:
    """What the marks mean; empty where nothing is marked.

    Args:
        table: The table.
        mark: How a figure is marked, such as ``*``.
    """
    if not has_best(table):
        return ""
    rivals = "methods of the tested model" if table.key == "refinement" else "tested models"
    if len(table.heads) > 1 and table.key != "refinement":
        rivals += f" of the same {table.heads[1].casefold()}"
    if len(table.judges) > 1:
        rivals += " by the same judge"
    return (
        f"{mark} best set: no other of the {rivals} is shown to be better (tests by item and case, "
        f"one-sided at {level_text(1 - table.level)} divided by the number of others, so that the "
        f"best is in the set with a chance of about {level_text(table.level)} or more); where none "
        "is marked, none is shown to be better than another"
    )


def tables_text(tables: Iterable[Table], *, width: int = WIDTH) -> str:
    """All tables as text: a block per judge and section, wide sections in several.

    A cell is ``value [low, high]``, with ``*`` after the value in the best set and ``/n`` where
    the denominator is not the section's scored rows, which stand beside the rows as
    ``scored/rows``. Rates are in percent, differences of rates in points.

    Args:
        tables: The tables.
        width: Columns beyond so many characters continue below; one always fits.
    """
    return render_text(_document(tables, mark="*"), width=width)


def tables_markdown(tables: Iterable[Table]) -> str:
    """All tables as Markdown: a table per judge and section, the best set bold."""
    return render_markdown(_document(tables, mark="Bold:"))


def _document(tables: Iterable[Table], *, mark: str) -> Document:
    return Document(tuple(part for table in tables for part in _parts(table, mark)))


def _parts(table: Table, mark: str) -> Iterator[Part]:
    yield Heading(f"{table.title} ({table.number}; --table {table.key})")
    for judge in table.judges:
        for section in table.sections:
            rows = [row for row in table.rows if row.judge == judge and held(row, section)]
            if rows:
                title = ", ".join(filter(None, (f"Judge {judge}" if judge else "", section)))
                yield from [Heading(title, 3)] if title else []
                yield _section(table, section, rows)
    legend = f"value [{level_text(table.level)} interval], /n where the denominator is not scored"
    yield Notes((legend, *filter(None, (best_note(table, mark), *table.notes))))


def _section(table: Table, section: str, rows: Sequence[TableRow]) -> document.Table:
    columns = columns_of(table, section)
    heads = [document.Column(title=head) for head in table.heads]
    heads.append(document.Column(title="scored", align="right"))
    body: list[tuple[document.Cell, ...]] = []
    for row in rows:
        cells = [
            DASH
            if (cell := row.cells.get(column.id)) is None
            else _figure(cell, column, row.counts.get(section))
            for column in columns
        ]
        body.append((*row.heads, scored(row, section), *cells))
    titles = [document.Column(title=column.title, align="value") for column in columns]
    return document.Table(columns=(*heads, *titles), rows=tuple(body), leads=len(heads))
