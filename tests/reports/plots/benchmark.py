"""Paper tables made by hand: any number of tested models, with holes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from apbjudge.document.model import Counts
from apbjudge.judge.metrics import BEHAVIOURS
from apbjudge.reports.paper.definitions import DEFINITIONS, OF_REPLIES, Definition
from apbjudge.reports.paper.rows import build
from apbjudge.reports.paper.table import PaperTable, TableRow
from apbjudge.reports.plots import Figure, paper_figures
from apbjudge.statistics.estimates import Estimate, nothing
from apbjudge.statistics.metric import MetricKind
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
    heads = [(name, place) if place else (name,) for name in names for place in PLACES[key]]
    compared = key == "judges"
    rows = [
        _row(TableRow(judge, head), of, rng)
        for judge in ([""] if compared else judges)
        for head in ([(judge,) for judge in judges] if compared else heads)
    ]
    return build(of, rows)


def _row(row: TableRow, of: Definition, rng: np.random.Generator) -> TableRow:
    behaviours = dict(zip(BROKEN, rng.multinomial(N, [0.5, 0.2, 0.15, 0.05, 0.1]), strict=True))
    kinds = [(s.title, kind) for s in of.sections for kind in s.columns if kind not in OF_REPLIES]
    cells = [(at, k.name, _estimate(k, rng, behaviours.get(k.name))) for at, k in kinds]
    gone = rng.random(len(kinds)) < 0.04
    for (section, name, estimate), hole in zip(cells, gone, strict=True):
        row.add(section, Counts(rows=N, scored=N), {} if hole else {name: estimate})
    return row


def _estimate(column: MetricKind, rng: np.random.Generator, behaviour: int | None) -> Estimate:
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
