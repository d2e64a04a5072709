"""The paper's tables as text, Markdown, LaTeX, CSV (a line per metric) and nested JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from ...document import model as document
from ...document.latex import HEAD, render_latex
from ...document.markdown import render_markdown
from ...document.model import Document, Heading, MetricCell, Notes, Part
from ...document.numbers import DASH, level_text
from ...document.text import WIDTH, render_text
from ...errors import visible
from ...judge.metrics import NAMES_BY_CODE
from ...records.tables import text_cell
from ...statistics.estimates import nothing
from ...statistics.metric import values_of
from .table import PaperColumn, PaperTable, TableRow

_CSV_COLUMNS: Sequence[str] = (
    "table number judge row_is row part_is part section column value low high level method "
    "n_items n_clusters n_resamples seed rows scored best note bound"
).split()


def metric_cell(row: TableRow, column: PaperColumn) -> MetricCell:
    """A row's metric in a column; one without a value where the row has none.

    ``/n`` is shown where the denominator is not the section's scored rows.
    """
    cell, counts = row.cells.get(column.id), row.counts.get(column.section)
    if cell is None:
        return MetricCell(estimate=nothing(), unit=column.unit, denominator=False)
    estimate = cell.estimate
    is_scored = counts is not None and counts.scored == estimate.n_items
    return MetricCell(
        estimate=estimate,
        unit=column.unit,
        best=bool(cell.best),
        denominator=not is_scored and estimate.value is not None,
    )


def scored(row: TableRow, section: str) -> str:
    """``scored/rows`` of a row's section; a dash where it has none."""
    counts = row.counts.get(section)
    return DASH if counts is None else f"{counts.scored}/{counts.rows}"


def columns_of(table: PaperTable, section: str) -> tuple[PaperColumn, ...]:
    """The columns of a section."""
    return tuple(column for column in table.columns if column.section == section)


def best_note(table: PaperTable, mark: str) -> str:
    """Meanings of the marks, such as ``*``; empty where nothing is marked."""
    if not any(cell.best for row in table.rows for cell in row.cells.values()):
        return ""
    rivals, shared = "tested models", [head.casefold() for head in table.heads[1:2]]
    if "method" in shared:
        rivals, shared = "methods", ["tested model", *map(str.casefold, table.heads[2:])]
    rivals += " of the same " + " and ".join(shared) if shared else ""
    if len(table.judges) > 1:
        rivals += " by the same judge"
    return (
        f"{mark} best set: no other of the {rivals} is shown to be better (tests by item and case, "
        f"one-sided at {level_text(1 - table.level)} divided by the number of others, so that the "
        f"best is in the set with a chance of about {level_text(table.level)} or more); where none "
        "is marked, none is shown to be better than another"
    )


def tables_text(tables: Iterable[PaperTable], *, width: int = WIDTH) -> str:
    """All tables as text: a block per judge and section, wide sections in several.

    A cell is ``value [low, high]``, with ``*`` after the value in the best set. Columns beyond
    ``width`` characters continue below; one always fits.
    """
    return render_text(tables_document(tables, "*"), width=width)


def tables_markdown(tables: Iterable[PaperTable]) -> str:
    """All tables as Markdown: a table per judge and section, the best set bold."""
    return render_markdown(tables_document(tables, "Bold:"))


def tables_latex(tables: Iterable[PaperTable], *, intervals: bool = True) -> str:
    """All tables as ``table*`` environments, sections side by side where they fit."""
    text = HEAD
    for table in tables:
        parts = [*_parts(table, [table.sections], "Bold:", intervals=intervals)]
        if table.number:
            parts.append(Notes((f"Layout: {table.number} of {table.paper}",)))
        document = Document(tuple(parts), title=table.title)
        text += "\n" + render_latex(document, label=f"tab:apb-{table.key}", intervals=intervals)
    return text


def tables_document(tables: Iterable[PaperTable], mark: str) -> Document:
    """All tables; ``mark`` is what a note says of the best set."""
    parts: list[Part] = []
    for table in tables:
        place = "; ".join(filter(None, (table.number, f"--table {table.key}")))
        parts.append(Heading(f"{table.title} ({place})"))
        parts += _parts(table, [(section,) for section in table.sections], mark)
    return Document(tuple(parts))


def _parts(
    table: PaperTable, blocks: Sequence[tuple[str, ...]], mark: str, *, intervals: bool = True
) -> Iterator[Part]:
    """A table per judge and block of sections, side by side; then all notes."""
    for judge in table.judges:
        for block in blocks:
            section = block[0] if len(block) == 1 else ""
            title = ", ".join(filter(None, (f"Judge {judge}" if judge else "", section)))
            rows = [row for row in table.rows if row.judge == judge and set(block) & {*row.counts}]
            if rows:
                yield from [Heading(title, 3)] if title else []
                yield _block(table, block, rows)
    cell = f"value [{level_text(table.level)} interval]" if intervals else "value"
    legend = (
        f"Cells: {cell}, /n where the denominator is not {table.counted}; rates in percent, "
        "differences of rates in points"
    )
    yield Notes((legend, *filter(None, [best_note(table, mark)]), *table.notes))


def _title(column: PaperColumn, rows: Sequence[TableRow]) -> str:
    """Name of a column; findings of code alone are never called a correctness rate."""
    is_bound = any(
        cell.estimate.bound == "upper" for row in rows if (cell := row.cells.get(column.id))
    )
    return NAMES_BY_CODE.get(column.title, column.title) if is_bound else column.title


def _block(
    table: PaperTable, sections: tuple[str, ...], rows: Sequence[TableRow]
) -> document.Table:
    columns = [document.Column(head) for head in table.heads]
    several = len(sections) > 1
    for section in sections:
        title = section if several else ""
        columns.append(document.Column(table.counted, "right", title))
        columns += [
            document.Column(_title(column, rows), "value", title)
            for column in columns_of(table, section)
        ]
    return document.Table(
        columns=tuple(columns),
        rows=tuple((*row.heads, *_cells(table, sections, row)) for row in rows),
        leads=len(table.heads) + (not several),
    )


def _cells(table: PaperTable, sections: tuple[str, ...], row: TableRow) -> Iterator[document.Cell]:
    for section in sections:
        columns = columns_of(table, section)
        if section in row.counts:
            yield scored(row, section)
            yield from (metric_cell(row, column) for column in columns)
        else:
            yield from [""] * (1 + len(columns))


def tables_csv(tables: Iterable[PaperTable]) -> str:
    """All tables in long form, one line per metric.

    Values are as estimated: rates from 0 to 1, not in percent; missing ones are empty. ``row_is``
    says what a row is of (``Tested model``), ``part_is`` what tells rows of one apart (``Level``;
    empty where nothing does). ``best`` is 1 in the best set, 0 outside, and empty where
    nothing is shown. Of texts from data, what can't be printed is escaped.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, _CSV_COLUMNS)
    writer.writeheader()
    for table in tables_json(tables):
        row_is, part_is = table["heads"][0], ", ".join(table["heads"][1:])
        for row in table["rows"]:
            name, part = visible(row["heads"][0]), ", ".join(map(visible, row["heads"][1:]))
            head = {
                "table": table["key"],
                "number": table["number"],
                "judge": visible(row["judge"]),
            }
            head |= {"row_is": row_is, "row": name, "part_is": part_is, "part": part}
            counts = {counts["section"]: counts for counts in row["counts"]}
            for cell in row["cells"]:
                best = None if cell["best"] is None else int(cell["best"])
                line = {**head, **cell, **counts[cell["section"]], "best": best}
                writer.writerow({column: text_cell(value) for column, value in line.items()})
    return out.getvalue()


def tables_json(tables: Iterable[PaperTable]) -> list[dict[str, Any]]:
    """All tables as nested JSON values; metrics as estimated, missing ones None, never NaN.

    ``best`` is true in the best set, false outside, and None where nothing is shown. Half
    characters (lone surrogates), which JSON can't hold, are escaped.
    """
    return [_table_json(table) for table in tables]


def _table_json(table: PaperTable) -> dict[str, Any]:
    def escaped(text: str) -> str:
        return text.encode(errors="backslashreplace").decode()

    return asdict(replace(table, rows=())) | {
        "rows": [
            {
                "judge": escaped(row.judge),
                "heads": [escaped(head) for head in row.heads],
                "counts": [
                    {"section": section, **asdict(counts)} for section, counts in row.counts.items()
                ],
                "cells": [
                    {
                        "section": column.section,
                        "column": column.key,
                        "best": cell.best,
                        **values_of(cell.estimate),
                    }
                    for column in table.columns
                    if (cell := row.cells.get(column.id)) is not None
                ],
            }
            for row in table.rows
        ],
        "notes": [escaped(note) for note in table.notes],
    }
