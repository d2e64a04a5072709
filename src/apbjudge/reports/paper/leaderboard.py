"""A leaderboard: one line for each tested model with its rate of success and tier."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...calibration.results import Reliability
from ...records.tables import text_cell
from ...statistics.best import places
from ...statistics.estimates import CONFIDENCE_LEVEL
from ...statistics.metric import Metric, record
from .building import judged_rows
from .definitions import HEADLINE
from .rows import TableSources
from .table import TableRow
from .trajectories import trajectory_headlines, trajectory_rows

COLUMNS: Sequence[str] = (
    "judge protocol setting tier rank_low rank_high tested_model metric value low high level "
    "method n_items n_clusters rows scored bound note unit better judge_agreement "
    "judge_agreement_low judge_agreement_high judge_labels judge_note"
).split()
"""Columns of a leaderboard; ``tier`` and the ranks are None if values can't be compared."""


def leaderboard_rows(results: TableSources) -> list[dict[str, Any]]:
    """A line for each tested model, under each judge, protocol and setting, best first.

    The metric is the rate of correct plans, or of successful trajectories. Tiers and ranks are
    those of ``statistics.best.places``, among the tested models of the same judge, protocol and
    setting; there are none for rates that are bounds. Each line also has the judge's agreement with
    the labels, if there are any.
    """
    reliability = results.reliability.judges if results.reliability else ()
    labelled = {of.judge: of for of in reliability}
    lines: list[dict[str, Any]] = []
    for judge in results.judges:
        about = {"judge": judge.judge, **_agreement(labelled.get(judge.judge))}
        about["judge_note"] = judge.note or ""
        rows = judged_rows(HEADLINE, judge)
        for section in HEADLINE.sections:
            lines += _lines(rows, section.title, {**about, "protocol": section.protocol})
        for definition in trajectory_headlines(results):
            (section,) = definition.sections
            rows = trajectory_rows(definition, judge)
            lines += _lines(rows, "", {**about, "protocol": section.protocol})
    return lines


def _agreement(of: Reliability | None) -> dict[str, Any]:
    """The judge's agreement with the labels; all of it None without labels."""
    metric = None if of is None else of.whole.measures.get("agreement")
    return {
        "judge_agreement": metric and metric.value,
        "judge_agreement_low": metric and metric.low,
        "judge_agreement_high": metric and metric.high,
        "judge_labels": metric and metric.n_items,
    }


def _lines(
    rows: Sequence[TableRow], section: str, about: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """The lines of one judge and protocol, setting by setting."""
    by_setting: dict[str, list[tuple[TableRow, Metric]]] = {}
    for row in rows:
        for (title, _), metric in row.estimates.items():
            if title == section and isinstance(metric, Metric):
                by_setting.setdefault("".join(row.heads[1:]), []).append((row, metric))
    for setting, shown in by_setting.items():
        yield from _ranked(shown, section, {**about, "setting": setting})


def _ranked(
    shown: Sequence[tuple[TableRow, Metric]], section: str, about: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    kind = shown[0][1].kind
    has_values = [(row, of) for row, of in shown if (section, of.name) in row.values]
    ranked = places(
        [row.values[section, of.name] for row, of in has_values],
        better="lower" if kind.better == "lower" else "higher",
        bounds=kind.bounds,
        level=CONFIDENCE_LEVEL,
    )
    place_of = {id(row): place for (row, _), place in zip(has_values, ranked, strict=True)}
    sign = 1 if kind.better == "lower" else -1

    def order(at: tuple[TableRow, Metric]) -> tuple[bool, float, str]:
        row, metric = at
        return metric.value is None, sign * (metric.value or 0.0), row.heads[0]

    for row, metric in sorted(shown, key=order):
        place = place_of.get(id(row))
        counts = row.counts[section]
        line = {
            **about,
            **record(metric),
            "tested_model": row.heads[0],
            "tier": place and place.tier,
            "rank_low": place and place.rank_low,
            "rank_high": place and place.rank_high,
            "rows": counts.rows,
            "scored": counts.scored,
        }
        yield {name: line[name] for name in COLUMNS}


def leaderboard_csv(lines: Sequence[Mapping[str, Any]]) -> str:
    """The lines as CSV; missing values are empty."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS)
    writer.writeheader()
    writer.writerows({name: text_cell(value) for name, value in line.items()} for line in lines)
    return out.getvalue()
