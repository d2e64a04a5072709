"""Rows of a table before the best are marked, and the marking."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ...statistics.best import Contender, best_set
from ...statistics.estimates import Estimate
from ..numbers import Unit
from .definitions import Rivals
from .table import Cell, Column, ColumnId, Counts, TableRow

_BOUNDS: Mapping[Unit, tuple[float, float] | None] = {
    "percent": (0.0, 1.0),
    "grade": (0.0, 1.0),
    "count": (0.0, 1.0),
    "points": (-1.0, 1.0),
    "grade difference": (-1.0, 1.0),
    "cost": None,
}
"""Of a single item's value, by the unit of the column; what is counted is 0 or 1 an item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A row without marks; see ``table.TableRow``.

    Attributes:
        judge: Who judged.
        heads: What it is a row of.
        counts: By section.
        estimates: By column.
        contenders: By column, what figures with a direction are the means of.
    """

    judge: str
    heads: tuple[str, ...]
    counts: Mapping[str, Counts]
    estimates: Mapping[ColumnId, Estimate]
    contenders: Mapping[ColumnId, Contender] = field(default_factory=dict[ColumnId, Contender])


def marked(
    drafts: Sequence[Draft], columns: Iterable[Column], *, rivals: Rivals | None, level: float
) -> tuple[TableRow, ...]:
    """The rows of a table, the best sets marked.

    Args:
        drafts: The rows.
        columns: The columns; only those with a direction are marked.
        rivals: Which rows of one judge compete: tested models that share all other heads, or
            all rows of a tested model. None: none do.
        level: The chance that a best set holds the truly best row.
    """
    best: dict[tuple[int, ColumnId], bool] = {}
    groups = _groups(drafts, rivals)
    for column in columns:
        for group in groups if column.better else ():
            best |= _best(drafts, group, column, level)
    return tuple(_row(draft, i, best) for i, draft in enumerate(drafts))


def _groups(drafts: Sequence[Draft], rivals: Rivals | None) -> list[list[int]]:
    groups: dict[tuple[str, ...], list[int]] = {}
    for i, draft in enumerate(drafts if rivals else ()):
        shared = draft.heads[1:] if rivals == "tested models" else draft.heads[:1]
        groups.setdefault((draft.judge, *shared), []).append(i)
    return list(groups.values())


def _best(
    drafts: Sequence[Draft], group: list[int], column: Column, level: float
) -> dict[tuple[int, ColumnId], bool]:
    """Who is in the best set and who is not; nobody where all are: then nothing is shown."""
    held = [i for i in group if _has_values(drafts[i], column)]
    rows = [drafts[i].contenders[column.id] for i in held]
    found = best_set(
        rows, better=column.better or "higher", bounds=_BOUNDS[column.unit], level=level
    )
    if all(found) or not any(found):
        return {}
    return {(i, column.id): is_best for i, is_best in zip(held, found, strict=True)}


def _has_values(draft: Draft, column: Column) -> bool:
    """A row without values neither is best nor lets others be."""
    contender = draft.contenders.get(column.id)
    return contender is not None and len(contender.values) > 0


def _row(draft: Draft, i: int, best: Mapping[tuple[int, ColumnId], bool]) -> TableRow:
    return TableRow(
        judge=draft.judge,
        heads=draft.heads,
        counts=draft.counts,
        cells={
            column: Cell(estimate=estimate, best=best.get((i, column)))
            for column, estimate in draft.estimates.items()
        },
    )
