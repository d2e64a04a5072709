"""Tables as data: CSV, a line per cell, and nested JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from ...errors import visible
from ...records.tables import text_cell
from .table import Cell, ColumnId, Counts, Table, TableRow

_COLUMNS = (
    "table number judge row_is row part_is part section column value low high level method "
    "n_items n_clusters n_resamples seed rows scored best note"
).split()


def tables_csv(tables: Iterable[Table]) -> str:
    """All tables in long form, one line per figure.

    Figures are as estimated: rates from 0 to 1, not in percent; missing ones are empty. ``row_is``
    says what a row is of (``Tested model``), ``part_is`` what tells rows of one apart (``Level``;
    empty where nothing does). ``best`` is 1 in the best set, 0 outside, and empty where
    nothing is shown.

    Args:
        tables: The tables; of texts from data, what can't be printed is escaped.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, _COLUMNS)
    writer.writeheader()
    for table in tables:
        for line in _lines(table):
            writer.writerow({name: text_cell(value) for name, value in line.items()})
    return out.getvalue()


def _lines(table: Table) -> Iterator[dict[Any, Any]]:
    titles = [*table.heads, ""][:2]
    for row in table.rows:
        heads = [*row.heads, ""][:2]
        common = {
            "table": table.key,
            "number": table.number,
            "judge": visible(row.judge),
            **dict(zip(("row_is", "part_is"), titles, strict=True)),
            **dict(zip(("row", "part"), map(visible, heads), strict=True)),
        }
        for column in table.columns:
            cell = row.cells.get(column.id)
            if cell is not None:
                counts = asdict(row.counts[column.section])
                best = None if cell.best is None else int(cell.best)
                names = {"section": column.section, "column": column.key}
                yield {**common, **names, **asdict(cell.estimate), **counts, "best": best}


def tables_json(tables: Iterable[Table]) -> str:
    """All tables as nested JSON in ASCII; figures as estimated, missing ones null, never NaN.

    ``best`` is true in the best set, false outside, and null where nothing is shown. Half
    characters (lone surrogates), which JSON can't hold, are escaped.
    """
    found = {"tables": [_table(table) for table in tables]}
    return json.dumps(found, indent=1, allow_nan=False) + "\n"


def _table(table: Table) -> dict[str, Any]:
    return {
        "key": table.key,
        "number": table.number,
        "title": table.title,
        "heads": table.heads,
        "columns": [
            {
                "section": c.section,
                "key": c.key,
                "title": c.title,
                "unit": c.unit,
                "better": c.better,
            }
            for c in table.columns
        ],
        "rows": [_row(table, row) for row in table.rows],
        "notes": [_whole(note) for note in table.notes],
        "level": table.level,
    }


def _row(table: Table, row: TableRow) -> dict[str, Any]:
    return {
        "judge": _whole(row.judge),
        "heads": [_whole(head) for head in row.heads],
        "counts": [_counts(section, counts) for section, counts in row.counts.items()],
        "cells": [
            _cell(column.id, row.cells[column.id])
            for column in table.columns
            if column.id in row.cells
        ],
    }


def _whole(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


def _counts(section: str, counts: Counts) -> dict[str, Any]:
    return {"section": section, **asdict(counts)}


def _cell(column: ColumnId, cell: Cell) -> dict[str, Any]:
    return {
        "section": column[0],
        "column": column[1],
        "best": cell.best,
        **asdict(cell.estimate),
    }
