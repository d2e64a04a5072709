"""How figures of a table read, in every format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...statistics.intervals import Estimate
from .table import Cell, Column, Counts, Table, TableRow, Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    times: int
    places: int
    signed: bool = False


_FORMS: Mapping[Unit, _Form] = {
    "percent": _Form(times=100, places=1),
    "points": _Form(times=100, places=1, signed=True),
    "grade": _Form(times=1, places=3),
    "grade difference": _Form(times=1, places=3, signed=True),
    "cost": _Form(times=1, places=2),
    "count": _Form(times=1, places=0),
}
MISSING = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A cell as texts.

    Attributes:
        value: The figure, ``MISSING`` where there is none.
        interval: ``[low, high]``; empty where there is none.
        of: ``/n`` where the denominator is not the section's scored rows; empty otherwise.
        best: Whether it is in the best set.
    """

    value: str
    interval: str = ""
    of: str = ""
    best: bool = False


def number(value: float | None, unit: Unit) -> str:
    """A figure in its unit; rates and points times 100.

    Args:
        value: The figure; None is shown as a dash. Zero has no sign.
        unit: How it is shown.
    """
    if value is None:
        return MISSING
    form = _FORMS[unit]
    rounded = round(value * form.times, form.places) + 0.0
    sign = "+" if form.signed and rounded else ""
    return f"{rounded:{sign}.{form.places}f}"


def shown(cell: Cell | None, column: Column, counts: Counts | None) -> Shown:
    """A cell as texts.

    Args:
        cell: The cell; None where the row has no such figure.
        column: Its column.
        counts: The rows behind the section; None where the row has none.
    """
    if cell is None:
        return Shown(value=MISSING)
    of = cell.estimate
    alone = counts is not None and counts.scored == of.n_items
    return Shown(
        value=number(of.value, column.unit),
        interval=interval(of, column.unit),
        of="" if alone or of.value is None else f"/{of.n_items}",
        best=bool(cell.best),
    )


def interval(of: Estimate, unit: Unit) -> str:
    """The interval in brackets; empty where there is none."""
    if of.low is None or of.high is None:
        return ""
    return f"[{number(of.low, unit)}, {number(of.high, unit)}]"


def scored(row: TableRow, section: str) -> str:
    """``scored/rows`` of a row's section; a dash where it has none."""
    counts = row.counts.get(section)
    return MISSING if counts is None else f"{counts.scored}/{counts.rows}"


def held(row: TableRow, section: str) -> bool:
    """Whether a row says anything of a section."""
    return section in row.counts


def columns_of(table: Table, section: str) -> tuple[Column, ...]:
    """The columns of a section."""
    return tuple(column for column in table.columns if column.section == section)


def has_best(table: Table) -> bool:
    """Whether anything is marked."""
    return any(cell.best for row in table.rows for cell in row.cells.values())


def percent(level: float) -> str:
    """A confidence level, such as ``95 %``."""
    return f"{round(level * 100, 2):g} %"


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
        f"one-sided at {percent(1 - table.level)} divided by the number of others, so that the "
        f"best is in the set with a chance of about {percent(table.level)} or more); where none is "
        "marked, none is shown to be better than another"
    )
