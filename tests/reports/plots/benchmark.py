"""Paper tables made by hand: any number of tested models, with holes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from apbjudge.judge.metrics import BEHAVIOURS
from apbjudge.reports.paper.definitions import DEFINITIONS, OF_REPLIES
from apbjudge.reports.paper.table import PaperCell, PaperColumn, PaperTable, TableRow
from apbjudge.reports.plots import Figure, paper_figures
from apbjudge.statistics.estimates import Estimate, nothing
from apbjudge.statistics.proportions import counted

PLACES = {
    "overall": ("",),
    "efficiency": ("",),
    "judges": ("",),
    "horizon": ("1", "2", "3"),
    "stage": ("early", "middle", "late"),
    "extraneous-levels-holistic": ("2", "4", "6", "8", "10"),
    "extraneous-levels-step-wise": ("2", "4", "6", "8", "10"),
}
BROKEN = tuple(kind.name for kind in BEHAVIOURS.values())
N = 60


def tables(
    names: Sequence[str],
    *,
    judges: Sequence[str] = ("judge",),
    keys: Sequence[str] = tuple(PLACES),
    seed: int = 0,
) -> tuple[PaperTable, ...]:
    """The tables; about one figure in twenty is missing in some way."""
    rng = np.random.default_rng(seed)
    return tuple(_table(key, names, judges, rng) for key in keys)


def _table(
    key: str, names: Sequence[str], judges: Sequence[str], rng: np.random.Generator
) -> PaperTable:
    of = next(definition for definition in DEFINITIONS if definition.key == key)
    compared = key == "judges"
    left_out = {kind.name for kind in OF_REPLIES}
    columns = tuple(column for column in of.columns if column.key not in left_out)
    heads = [(name, place) if place else (name,) for name in names for place in PLACES[key]]
    rows = tuple(
        TableRow(judge=judge, heads=head, counts={}, cells=_cells(columns, rng))
        for judge in ([""] if compared else judges)
        for head in ([(judge,) for judge in judges] if compared else heads)
    )
    return PaperTable(
        key=key, number="", title=of.title, heads=of.heads, columns=columns, rows=rows
    )


def _cells(
    columns: Sequence[PaperColumn], rng: np.random.Generator
) -> dict[tuple[str, str], PaperCell]:
    behaviours = dict(zip(BROKEN, rng.multinomial(N, [0.5, 0.2, 0.15, 0.05, 0.1]), strict=True))
    cells = {
        column.id: PaperCell(estimate=_estimate(column, rng, behaviours.get(column.key)))
        for column in columns
    }
    gone = rng.random(len(columns)) < 0.04
    return {
        place: cell for (place, cell), hole in zip(cells.items(), gone, strict=True) if not hole
    }


def _estimate(column: PaperColumn, rng: np.random.Generator, behaviour: int | None) -> Estimate:
    kind = rng.random()
    if kind < 0.03:
        return nothing()
    rate = counted(int(rng.integers(0, N + 1)) if behaviour is None else int(behaviour), N)
    if column.unit == "percent":
        return replace(rate, low=None, high=None, method="none") if kind < 0.06 else rate
    if column.unit == "cost":
        value = float(rng.uniform(5, 20))
        return replace(rate, value=value, low=0.9 * value, high=1.2 * value)
    if column.unit == "count":
        return replace(rate, value=round((rate.value or 0) * N), low=None, high=None)
    return rate


@lru_cache
def figures(n: int) -> dict[str, Figure]:
    """All figures of ``n`` tested models and one judge, by key."""
    names = tuple(f"Qwen{i}VL-{30 * i + 235}B-A22B-Instruct" for i in range(n))
    return {figure.key: figure for figure in paper_figures(tables(names))}
