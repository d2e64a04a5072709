"""The paper's tables as text, Markdown, LaTeX, CSV (a line per metric) and nested JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from ...document.latex import HEAD, render_latex
from ...document.markdown import render_markdown
from ...document.model import (
    Column,
    Document,
    Heading,
    MetricCell,
    Notes,
    Part,
    Table,
)
from ...document.numbers import level_text
from ...document.text import WIDTH, render_text
from ...errors import visible
from ...judge.metrics import NAMES_BY_CODE
from ...records.tables import text_cell
from ...statistics.estimates import CONFIDENCE_LEVEL
from ...statistics.metric import values_of
from .table import PaperTable

_CSV_COLUMNS: Sequence[str] = (
    "table number judge row_is row part_is part section column value low high level method "
    "n_items n_clusters n_resamples seed rows scored best note bound"
).split()


def best_note(table: PaperTable, mark: str) -> str:
    """Meanings of the marks, such as ``*``; empty without marks."""
    if not any(cell.best for cell in table.metrics):
        return ""
    rivals, shared = "tested models", [head.casefold() for head in table.heads[1:2]]
    if "method" in shared:
        rivals, shared = "methods", ["tested model", *map(str.casefold, table.heads[2:])]
    rivals += " of the same " + " and ".join(shared) if shared else ""
    if len(table.judges) > 1:
        rivals += " by the same judge"
    level, chance = level_text(CONFIDENCE_LEVEL), level_text(1 - CONFIDENCE_LEVEL)
    return (
        f"{mark} best set: no other of the {rivals} is shown to be better (tests by item and case, "
        f"one-sided at {chance} divided by the number of others, so that the best is in the set "
        f"with a chance of about {level} or more); where none is marked, none is shown to be "
        "better than another"
    )


def tables_text(tables: Iterable[PaperTable], *, width: int = WIDTH) -> str:
    """All tables as text: a block per judge and section, wide sections in several.

    A cell is ``value [low, high]``, with ``*`` after the value in the best set. Columns beyond
    ``width`` characters continue below; each line has at least one.
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
    """All tables as a document; ``mark`` is the mark of the best set in the notes."""
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
            part = table.part(judge, block)
            section = block[0] if len(block) == 1 else ""
            title = ", ".join(filter(None, (f"Judge {judge}" if judge else "", section)))
            if part.rows:
                yield from [Heading(title, 3)] if title else []
                yield replace(part, columns=tuple(_titled(part)))
    cell = f"value [{level_text(CONFIDENCE_LEVEL)} interval]" if intervals else "value"
    legend = (
        f"Cells: {cell}, /n where the denominator is not {table.counted}; rates in percent, "
        "differences of rates in points"
    )
    yield Notes((legend, *filter(None, [best_note(table, mark)]), *table.notes))


def _titled(part: Table) -> Iterator[Column]:
    """The columns; a rate of the static judge is never called a correctness rate."""
    for column, *cells in zip(part.columns, *part.rows, strict=True):
        bounds = {cell.estimate.bound for cell in cells if isinstance(cell, MetricCell)}
        by_rule = NAMES_BY_CODE.get(column.title) if "upper" in bounds else None
        yield replace(column, title=by_rule) if by_rule else column


def tables_csv(tables: Iterable[PaperTable]) -> str:
    """All tables in long form, one line per metric.

    Values are as estimated: rates from 0 to 1, not in percent; missing ones are empty. ``row_is``
    names the kind of a row's subject (``Tested model``), ``part_is`` the field that splits its rows
    (``Level``; empty without one). ``best`` is 1 in the best set, 0 outside, and empty if the set
    is unknown. Unprintable characters in texts from data are escaped.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, _CSV_COLUMNS)
    writer.writeheader()
    for table in tables:
        row_is, part_is = table.heads[0], ", ".join(table.heads[1:])
        for judge, heads, counts, cells in table.lines:
            head = {"table": table.key, "number": table.number, "judge": visible(judge)}
            head |= {"row_is": row_is, "row": visible(heads[0])}
            head |= {"part_is": part_is, "part": ", ".join(map(visible, heads[1:]))}
            for (section, column), cell in cells.items():
                line = {**head, "section": section, "column": column, **asdict(counts[section])}
                line |= values_of(cell.estimate)
                line["best"] = None if cell.best is None else int(cell.best)
                writer.writerow({name: text_cell(value) for name, value in line.items()})
    return out.getvalue()


def tables_json(tables: Iterable[PaperTable]) -> list[dict[str, Any]]:
    """All tables as nested JSON values; metrics as estimated, missing ones None, never NaN.

    ``best`` is true in the best set, false outside, and None if the set is unknown. Lone
    surrogates, which JSON can't hold, are escaped.
    """
    return [_table_json(table) for table in tables]


def _table_json(table: PaperTable) -> dict[str, Any]:
    def escaped(text: str) -> str:
        return text.encode(errors="backslashreplace").decode()

    kinds = [(column.section, column.kind) for column in table.columns if column.kind]
    return {
        "key": table.key,
        "number": table.number,
        "title": table.title,
        "heads": table.heads,
        "columns": [
            {
                "key": kind.name,
                "title": kind.heading,
                "unit": kind.unit,
                "better": kind.better,
                "bounds": kind.bounds,
                "section": section,
                "meaning": kind.meaning,
            }
            for section, kind in kinds
        ],
        "rows": [
            {
                "judge": escaped(judge),
                "heads": list(map(escaped, heads)),
                "counts": [{"section": at, **asdict(of)} for at, of in counts.items()],
                "cells": [
                    {"section": at[0], "column": at[1], "best": cell.best}
                    | values_of(cell.estimate)
                    for at, cell in cells.items()
                ],
            }
            for judge, heads, counts, cells in table.lines
        ],
        "notes": list(map(escaped, table.notes)),
        "counted": table.counted,
        "level": CONFIDENCE_LEVEL,
        "paper": table.paper,
    }
