"""Tables as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..markdown import plain
from .formatting import Shown, best_note, columns_of, held, percent, scored, shown
from .table import Column, Table, TableRow


def tables_markdown(tables: Iterable[Table]) -> str:
    """All tables: one Markdown table per judge and section, the best set bold.

    Args:
        tables: The tables; texts from data are escaped, so that none is read as Markdown or HTML.
    """
    return "\n\n".join("\n".join(_table(table)) for table in tables) + "\n"


def _table(table: Table) -> Iterator[str]:
    yield f"## {plain(table.title)} ({table.number})"
    for judge in table.judges:
        for section in table.sections:
            rows = [row for row in table.rows if row.judge == judge and held(row, section)]
            if rows:
                yield ""
                yield from _block(table, judge, section, rows)
    yield ""
    yield f"Value [{percent(table.level)} interval], /n where the denominator is not scored."
    notes = (best_note(table, "Bold:"), *table.notes)
    yield from (f"\n{plain(note)}." for note in notes if note)


def _block(table: Table, judge: str, section: str, rows: Sequence[TableRow]) -> Iterator[str]:
    title = ", ".join(filter(None, (f"judge {judge}" if judge else "", section)))
    if title:
        yield f"### {plain(title[0].upper() + title[1:])}"
        yield ""
    columns = columns_of(table, section)
    yield _line([plain(text) for text in (*table.heads, "scored", *(c.title for c in columns))])
    yield _line([*("---" for _ in table.heads), *("---:" for _ in ("", *columns))])
    for row in rows:
        heads = [plain(head) for head in row.heads]
        yield _line([*heads, scored(row, section), *(_cell(row, column) for column in columns)])


def _cell(row: TableRow, column: Column) -> str:
    text: Shown = shown(row.cells.get(column.id), column, row.counts.get(column.section))
    value = f"**{text.value}**" if text.best else text.value
    return " ".join(filter(None, (value, text.interval, text.of)))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
