"""Tables of whole runs: the figures of their protocols by tested model and setting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from ...errors import OptionError
from ...judge.run_figures import columns_of, figures_of, run_figures, success_kind
from ...judge.summary import VALUE_ORDER
from ...records.columns import Vector
from ...records.judgement_table import JudgementTable
from ...statistics.best import Contender
from ...statistics.metric import Metric, MetricKind
from ...trajectories import RUN_PROTOCOLS, RunTable, run_protocol
from .rows import JudgeResults, TableSources, UnmarkedRow, best_sets
from .table import Counts, PaperCell, PaperColumn, PaperTable, TableRow

RUNS = RunTable(key="runs", title="Whole runs")
"""The table of protocols that name none."""
RUN_TABLE_KEYS: tuple[str, ...] = (
    *(table.key for protocol in RUN_PROTOCOLS.values() for table in protocol.tables),
    RUNS.key,
)
_HEADS = {"steps": "Steps"}


def run_tables(results: TableSources, names: Sequence[str] = ()) -> tuple[PaperTable, ...]:
    """The tables of the protocols of whole runs that results have something for.

    Raises:
        OptionError: If there is nothing for a table that is among ``names``.
    """
    tables: list[PaperTable] = []
    protocols = {p for judge in results.judges for p in _protocols(judge.columns)}
    for name in sorted(protocols):
        for i, definition in enumerate(_tables_of(name)):
            if not names or definition.key in names:
                tables += (t for t in _table(results, name, definition) if i == 0 or _says_more(t))
    made = {table.key for table in tables}
    if missing := [name for name in names if name in RUN_TABLE_KEYS and name not in made]:
        raise OptionError(
            f"--table {missing[0]}: there is nothing for it; it needs whole runs, graded under its "
            "protocol"
        )
    return tuple(tables)


def run_headlines(results: TableSources) -> Iterator[PaperTable]:
    """The rate of successful runs by tested model and setting, a table a protocol."""
    for name in sorted({p for judge in results.judges for p in _protocols(judge.columns)}):
        headline = RunTable(
            key="headline", title="Successful runs", figures=(success_kind(name).name,)
        )
        yield from _table(results, name, headline)


def _tables_of(protocol: str) -> tuple[RunTable, ...]:
    own = run_protocol(protocol)
    return own.tables if own is not None and own.tables else (RUNS,)


def _says_more(table: PaperTable) -> bool:
    """Whether a table has more than the rate of success, which the first one has."""
    return len(table.columns) > 1


def _protocols(c: JudgementTable) -> set[str]:
    is_run = c.codes["form"] == c.form_of_runs
    codes: list[int] = c.codes["protocol"][is_run].tolist()
    return {label for code in codes if (label := c.labels["protocol"][code]) is not None}


def _table(results: TableSources, protocol: str, definition: RunTable) -> Iterator[PaperTable]:
    """The table, if any run has a figure for it."""
    rows = [row for judge in results.judges for row in _unmarked(judge, protocol, definition)]
    if not any(row.estimates for row in rows):
        return
    columns = tuple(map(PaperColumn.of, _kinds(rows)))
    heads = ["Tested model", "Setting", *filter(None, [_HEADS.get(definition.split)])]
    has_settings = any(row.heads[1] for row in rows)
    best = best_sets(rows, columns, "tested models")
    yield PaperTable(
        key=definition.key,
        number=definition.number,
        paper="" if (own := run_protocol(protocol)) is None else own.paper,
        title=definition.title,
        heads=tuple(h for i, h in enumerate(heads) if i != 1 or has_settings),
        columns=columns,
        rows=tuple(
            TableRow(
                judge=row.judge,
                heads=tuple(h for i, h in enumerate(row.heads) if i != 1 or has_settings),
                counts=row.counts,
                cells={
                    column: PaperCell(estimate=estimate, best=best.get((i, column)))
                    for column, estimate in row.estimates.items()
                },
            )
            for i, row in enumerate(rows)
        ),
    )


def _kinds(rows: Iterable[UnmarkedRow]) -> Iterable[MetricKind]:
    """What the rows have; of trials, nothing is marked as best."""
    kinds = (of.kind for row in rows for of in row.estimates.values() if isinstance(of, Metric))
    return (
        replace(kind, better=None) if kind.name.startswith("pass") else kind
        for kind in dict.fromkeys(kinds)
    )


def _unmarked(judge: JudgeResults, protocol: str, definition: RunTable) -> Iterator[UnmarkedRow]:
    c = judge.columns
    names = ["tested_model", "setting", *filter(None, [definition.split])]
    labels = c.labels["protocol"]
    profiles = c.codes["protocol"] == (labels.index(protocol) if protocol in labels else -1)
    profiles &= c.codes["form"] == c.form_of_runs
    keys = np.stack([c.codes[name] for name in names], axis=1)
    parts: list[tuple[tuple[str, ...], Vector]] = []
    for key in np.unique(keys[profiles], axis=0):
        texts = tuple(c.labels[n][int(code)] for n, code in zip(names, key, strict=True))
        if texts[-1] is not None:  # else the row says nothing of what the table is split by
            rows = c.where(profiles & (keys == key).all(axis=1))
            parts.append((tuple(text or "" for text in texts), rows))
    for heads, rows in sorted(parts, key=lambda part: _place(part[0])):
        figures = run_figures(c, rows, protocol)
        wanted = definition.figures or tuple(figures)
        estimates = {name: figures[name] for name in wanted if name in figures}
        counts = Counts(rows=len(rows), scored=int(c.scored[rows].sum()))
        yield UnmarkedRow(judge.judge, heads).add(
            "", counts, estimates, dict(_contenders(c, rows, protocol, {*estimates}))
        )


def _place(heads: tuple[str, ...]) -> tuple[object, ...]:
    model, setting, *rest = heads
    value = "".join(rest)
    rank = VALUE_ORDER.index(value) if value in VALUE_ORDER else len(VALUE_ORDER)
    return model.casefold(), model, setting, rank, len(value), value


def _contenders(
    c: JudgementTable, rows: Vector, protocol: str, wanted: set[str]
) -> Iterator[tuple[str, Contender]]:
    """What the figures with a direction are means of; ratios of totals are not compared."""
    scored = rows[c.scored[rows] == 1]
    success = success_kind(protocol).name
    if success in wanted:
        correct = c.correct[scored].astype(float)
        yield success, Contender(values=correct, items=c.item[scored], cases=c.case[scored])
    for figure in figures_of(c, protocol):
        if figure.name in wanted and figure.better is not None and figure.per is None:
            values, _ = columns_of(c, figure, rows)
            at = rows[~np.isnan(values)]
            yield (
                figure.name,
                Contender(values=values[~np.isnan(values)], items=c.item[at], cases=c.case[at]),
            )
