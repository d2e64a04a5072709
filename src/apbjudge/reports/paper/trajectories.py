"""Tables of whole trajectories: the metrics of their protocols by tested model and setting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...document.model import Counts
from ...judge.trajectory_metrics import (
    columns_of,
    protocol_metrics,
    success_kind,
    trajectories_by,
    trajectory_metrics,
)
from ...records.columns import Vector
from ...records.judgement_table import TRAJECTORY, JudgementTable
from ...statistics.best import RowValues
from ...statistics.kinds import PEARSON, SPEARMAN
from ...statistics.metric import Metrics
from ...statistics.scores import LEAST_UNITS, fisher_correlations
from ...trajectories import TRAJECTORY_PROTOCOLS, TrajectoryTable, trajectory_protocol
from .definitions import Definition, Section
from .rows import JudgeResults, TableSources, counts_of, groups, has_label, place_of
from .table import TableRow

WHOLE = TrajectoryTable(key="trajectories", title="Whole trajectories")
"""The table of protocols without their own table."""
TRAJECTORY_TABLE_KEYS: tuple[str, ...] = (
    *(table.key for protocol in TRAJECTORY_PROTOCOLS.values() for table in protocol.tables),
    WHOLE.key,
)
TRAJECTORY_NEEDS = "whole trajectories, graded under their protocol"
DOMINANT = "Dominant class"
_HEADS = {"steps": "Steps", "outcome": "Outcome"}


def trajectory_definitions(results: TableSources) -> Iterator[Definition]:
    """The tables of the protocols of whole trajectories that results have.

    The first table has the rate of success; the others have further metrics.
    """
    for name in _protocols(results):
        own = trajectory_protocol(name)
        for i, table in enumerate((own and own.tables) or (WHOLE,)):
            yield _definition(name, table, least=2 if i else 1)


def trajectory_headlines(results: TableSources) -> Iterator[Definition]:
    """The rate of successful trajectories by tested model and setting, a table a protocol."""
    for name in _protocols(results):
        metrics, title = (success_kind(name).name,), "Successful trajectories"
        yield _definition(name, TrajectoryTable(key="headline", title=title, metrics=metrics))


def _definition(protocol: str, table: TrajectoryTable, least: int = 1) -> Definition:
    own = trajectory_protocol(protocol)
    if table.correlates:
        return Definition(
            key=table.key,
            number=table.number,
            title=table.title,
            heads=("Metric", "Setting"),
            sections=(Section((PEARSON, SPEARMAN), protocol, names=table.correlates),),
            needs=f"{TRAJECTORY_NEEDS}, of 3 tested models or more",
            source="correlations",
            rivals=None,
            notes=table.notes,
            paper="" if own is None else own.paper,
        )
    return Definition(
        key=table.key,
        number=table.number,
        title=table.title,
        heads=(
            *("Tested model", "Setting"),
            *filter(None, [_HEADS.get(table.split), DOMINANT if table.dominant else ""]),
        ),
        sections=(Section((), protocol, form=TRAJECTORY, names=table.metrics),),
        needs=TRAJECTORY_NEEDS,
        source="trajectories",
        split=table.split or None,
        notes=table.notes,
        dominant=table.dominant,
        only_with=table.only_with,
        paper="" if own is None else own.paper,
        least=least,
    )


def _protocols(results: TableSources) -> list[str]:
    names: set[str] = set()
    for c in (judge.columns for judge in results.judges):
        numbers = c.codes["protocol"][c.codes["form"] == c.form_of_trajectories]
        codes: list[int] = np.unique(numbers).tolist()
        names.update(filter(None, (c.labels["protocol"][code] for code in codes)))
    return sorted(names)


def trajectory_rows(definition: Definition, judge: JudgeResults) -> list[TableRow]:
    """A row for each tested model, setting and, if the table has a split, value."""
    c, (section,) = judge.columns, definition.sections
    profiles = has_label(c, "protocol", section.protocol) & (
        c.codes["form"] == c.form_of_trajectories
    )
    fields = ("tested_model", "setting")
    by_profile = [] if definition.split in (None, "outcome") else [definition.split]
    parts = groups(c, profiles, (*fields, *by_profile))
    if definition.split == "outcome":
        parts = (
            ((*heads, value), part)
            for heads, at in parts
            for value, part in trajectories_by(c, at, definition.split).items()
            if value
        )
    rows: list[TableRow] = []
    for heads, at in parts:
        metrics = trajectory_metrics(c, at, section.protocol)
        wanted = section.names or tuple(metrics)
        estimates = {name: metrics[name] for name in wanted if name in metrics}
        if definition.only_with and definition.only_with not in metrics:
            continue
        row_values = dict(_row_values(c, at, section.protocol, {*estimates}))
        largest = [_dominant(estimates, definition.dominant)] if definition.dominant else []
        row = TableRow(judge.judge, (*heads, *largest))
        rows.append(row.add("", counts_of(c, at), estimates, row_values))
    return sorted(rows, key=lambda row: place_of(row.heads))


def correlation_rows(definition: Definition, judge: JudgeResults) -> list[TableRow]:
    """A row for each metric and setting with three tested models: its correlation with success."""
    c, (section,) = judge.columns, definition.sections
    profiles = has_label(c, "protocol", section.protocol)
    profiles &= c.codes["form"] == c.form_of_trajectories
    by_setting: dict[str, list[Metrics]] = {}
    for (_, setting), at in groups(c, profiles, ("tested_model", "setting")):
        metrics = trajectory_metrics(c, at, section.protocol)
        by_setting.setdefault(setting, []).append(metrics)
    rows: list[TableRow] = []
    for name in section.names:
        for setting, models in sorted(by_setting.items()):
            pairs = [
                [of[key].value for key in (success_kind(section.protocol).name, name)]
                for of in models
                if name in of
            ]
            known = np.array([pair for pair in pairs if None not in pair], dtype=float)
            if len(known) >= LEAST_UNITS - 1:
                n = Counts(rows=len(models), scored=len(known))
                correlations = fisher_correlations(*known.T)
                rows.append(TableRow(judge.judge, (name, setting)).add("", n, correlations))
    return rows


def _dominant(metrics: Metrics, names: Sequence[str]) -> str:
    """The heading of the largest of some metrics, or of all equal ones; empty without any."""
    stated = [metrics[name] for name in names if name in metrics]
    values = {metric.kind.heading: metric.value or 0.0 for metric in stated}
    largest = max(values.values(), default=0.0)
    return ", ".join(name for name, value in values.items() if value == largest > 0)


def _row_values(
    c: JudgementTable, rows: Vector, protocol: str, wanted: set[str]
) -> Iterator[tuple[str, RowValues]]:
    """Values of the metrics with a direction; ratios of totals are not compared."""
    scored = rows[c.scored[rows] == 1]
    success = success_kind(protocol).name
    if success in wanted:
        correct = c.correct[scored].astype(float)
        yield success, RowValues(values=correct, items=c.item[scored], cases=c.case[scored])
    for metric in protocol_metrics(c, protocol):
        if metric.name in wanted and metric.better is not None and metric.per is None:
            values, _ = columns_of(c, metric, rows)
            at = rows[~np.isnan(values)]
            yield (
                metric.name,
                RowValues(values=values[~np.isnan(values)], items=c.item[at], cases=c.case[at]),
            )
