"""The paper's tables from results: which there are, their rows, and the best sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...errors import OptionError
from ...statistics.best import best_set
from ...statistics.estimates import CONFIDENCE_LEVEL
from ..numbers import Unit
from ..results import Results
from ..tables import reasons
from .definitions import DEFINITIONS, TABLE_KEYS, Definition, Rivals
from .rows import LABEL_TABLES, Draft, judged_rows, label_rows, refined_rows
from .table import Cell, Column, ColumnId, Table, TableRow

_BOUNDS: Mapping[Unit, tuple[float, float] | None] = {
    "percent": (0.0, 1.0),
    "grade": (0.0, 1.0),
    "count": (0.0, 1.0),
    "points": (-1.0, 1.0),
    "grade difference": (-1.0, 1.0),
    "cost": None,
}
"""Of a single item's value, by the unit of the column; what is counted is 0 or 1 an item."""


def paper_tables(results: Results, names: Sequence[str] = ()) -> tuple[Table, ...]:
    """The tables of the paper that results have something for.

    Rows of one judge stand together, sorted by tested model. In columns with a direction the best
    set is marked (``statistics.best``): all rows but those that another one is shown to be
    better than, at the table's confidence level. Tested models compete with each other where all
    else is the same (judge, level, stage, …), refinement methods for one tested model. Figures of
    judges against humans are not marked, see ``rows.label_rows``.

    Args:
        results: Read with items told apart.
        names: Keys of the tables wanted, some of ``TABLE_KEYS``; empty for all there are.

    Returns:
        The tables in the paper's order. Sections that no row has anything for are left out.

    Raises:
        OptionError: If a name is unknown, or there is nothing for a table that was named.
    """
    for name in names:
        if name not in TABLE_KEYS:
            raise OptionError(f"--table: expected some of {', '.join(TABLE_KEYS)}, got {name!r}")
    wanted = [of for of in DEFINITIONS if not names or of.key in names]
    found = [(of, _rows(of, results)) for of in wanted]
    for of, rows in found:
        if names and not rows:
            raise OptionError(f"--table {of.key}: there is nothing for it; it needs {of.needs}")
    return tuple(_table(of, rows, results) for of, rows in found if rows)


def _rows(of: Definition, results: Results) -> list[Draft]:
    if of.key in LABEL_TABLES:
        return label_rows(of, results.reliability) if results.reliability else []
    if of.key == "refinement":
        return refined_rows(of, results)
    return [row for judge in results.judges for row in judged_rows(of, judge)]


def _table(of: Definition, rows: list[Draft], results: Results) -> Table:
    level = results.level if of.key in LABEL_TABLES else CONFIDENCE_LEVEL
    held = {section for row in rows for section in row.counts}
    columns = tuple(column for column in of.columns if column.section in held)
    return Table(
        key=of.key,
        number=of.number,
        title=of.title,
        heads=of.heads,
        columns=columns,
        rows=_marked(rows, columns, of.rivals, level),
        notes=tuple(
            dict.fromkeys((*of.notes, *_judge_notes(of, rows, results), *_missing(of, rows)))
        ),
        level=level,
    )


def _judge_notes(of: Definition, rows: list[Draft], results: Results) -> list[str]:
    """What must be said of each judge, and which tested model is the judge itself."""
    if of.key not in LABEL_TABLES or not results.reliability:
        shown = {row.judge for row in rows}
        return [f"{j.judge}: {j.note}" for j in results.judges if j.note and j.judge in shown]
    judges = results.reliability.judges
    notes = [f"{judge.judge}: {note}" for judge in judges for note in judge.notes]
    if of.key == "self-evaluation":
        owns = {judge.judge: judge.self_evaluation for judge in judges}
        notes += [f"{own.own} is the judge {name}" for name, own in owns.items() if own and own.own]
    return notes


def _missing(of: Definition, rows: list[Draft]) -> list[str]:
    """Why figures have no value."""
    titles = {column.id: column.title for column in of.columns}
    several = len({row.judge for row in rows}) > 1
    return reasons(
        (
            estimate.note,
            " ".join(filter(None, (key[0], titles[key]))),
            ", ".join(filter(None, (row.judge if several else "", *row.heads))),
        )
        for row in rows
        for key, estimate in row.estimates.items()
        if estimate.value is None and estimate.low is None and estimate.note
    )


def _marked(
    drafts: Sequence[Draft], columns: Iterable[Column], rivals: Rivals | None, level: float
) -> tuple[TableRow, ...]:
    """The rows of a table, the best sets marked.

    Args:
        drafts: The rows.
        columns: Only those with a direction are marked.
        rivals: Which rows of one judge compete: tested models that share all other heads, or
            all rows of a tested model. None: none do.
        level: The chance that a best set holds the truly best row.
    """
    groups: dict[tuple[str, ...], list[int]] = {}
    for i, draft in enumerate(drafts if rivals else ()):
        shared = draft.heads[1:] if rivals == "tested models" else draft.heads[:1]
        groups.setdefault((draft.judge, *shared), []).append(i)
    best: dict[tuple[int, ColumnId], bool] = {}
    for column in columns:
        for group in groups.values() if column.better else ():
            best |= _best(drafts, group, column, level)
    return tuple(
        TableRow(
            judge=draft.judge,
            heads=draft.heads,
            counts=draft.counts,
            cells={
                column: Cell(estimate=estimate, best=best.get((i, column)))
                for column, estimate in draft.estimates.items()
            },
        )
        for i, draft in enumerate(drafts)
    )


def _best(
    drafts: Sequence[Draft], group: list[int], column: Column, level: float
) -> dict[tuple[int, ColumnId], bool]:
    """Who is in the best set and who is not; nobody where all are: then nothing is shown.

    A row without values neither is best nor lets others be.
    """
    rows = {
        i: contender
        for i in group
        if (contender := drafts[i].contenders.get(column.id)) and len(contender.values)
    }
    found = best_set(
        [*rows.values()], better=column.better or "higher", bounds=_BOUNDS[column.unit], level=level
    )
    if all(found) or not any(found):
        return {}
    return {(i, column.id): is_best for i, is_best in zip(rows, found, strict=True)}
