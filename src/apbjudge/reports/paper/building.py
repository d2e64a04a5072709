"""The paper's tables from results."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import OptionError
from ...statistics.estimates import CONFIDENCE_LEVEL
from ..results import Results
from ..tables import reasons
from .definitions import DEFINITIONS, TABLE_KEYS, Definition
from .drafts import Draft, marked
from .judged import judged_rows
from .refining import refined_rows
from .table import Table
from .trust import trust_notes, trust_rows

_OF_LABELS = frozenset(("judges", "diversity", "self-evaluation"))


def paper_tables(results: Results, names: Sequence[str] = ()) -> tuple[Table, ...]:
    """The tables of the paper that results have something for.

    Rows of one judge stand together, sorted by tested model. In columns with a direction the best
    set is marked (``calibration.best``): all rows but those that another one is shown to be
    better than, at the table's confidence level. Tested models compete with each other where all
    else is the same (judge, level, stage, …), refinement methods for one tested model. Figures of
    judges against humans are not marked, see ``trust``.

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
    if of.key in _OF_LABELS:
        return trust_rows(of, results.reliability) if results.reliability else []
    if of.key == "refinement":
        return refined_rows(of, results)
    return [row for judge in results.judges for row in judged_rows(of, judge)]


def _table(of: Definition, rows: list[Draft], results: Results) -> Table:
    level = results.level if of.key in _OF_LABELS else CONFIDENCE_LEVEL
    held = {section for row in rows for section in row.counts}
    columns = tuple(column for column in of.columns if column.section in held)
    return Table(
        key=of.key,
        number=of.number,
        title=of.title,
        heads=of.heads,
        columns=columns,
        rows=marked(rows, columns, rivals=of.rivals, level=level),
        notes=_notes(of, rows, results),
        level=level,
    )


def _notes(of: Definition, rows: list[Draft], results: Results) -> tuple[str, ...]:
    """The table's own, then the judges'; each once."""
    if of.key in _OF_LABELS and results.reliability:
        own = trust_notes(of, results.reliability)
    else:
        shown = {row.judge for row in rows}
        own = [f"{j.judge}: {j.note}" for j in results.judges if j.note and j.judge in shown]
    return tuple(dict.fromkeys((*of.notes, *own, *_missing(of, rows))))


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
