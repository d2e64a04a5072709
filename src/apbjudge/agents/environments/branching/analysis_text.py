"""The text of an analysis of entropies against errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....document.model import Cell, Document, Heading, MetricCell, Notes, Part, Table, missing
from ....document.numbers import DASH, count
from ....statistics.estimates import Estimate
from .analysis import EntropyGroup, EntropyReport


def entropy_document(report: EntropyReport) -> Document:
    """Bins and measures of each group, and counts of what was left out."""
    parts: list[Part] = []
    for group in report.groups:
        parts += _group(group)
    measured = (
        f"entropy in {report.unit}, {_estimated(report)}",
        "value [95 % interval] /n, rates in percent, intervals over cases",
        "AUROC: chance that a wrong choice has the higher entropy; 0.5 where it says nothing",
    )
    notes = [
        *measured,
        *missing(parts),
        *(f"{count(n)} {what}: left out" for what, n in report.left_out.items()),
    ]
    return Document((*parts, Notes(tuple(notes))))


def _estimated(report: EntropyReport) -> str:
    if report.estimate == "miller-madow":
        return "that of samples corrected by Miller and Madow"
    return "not corrected: that of few samples is too low"


def _group(group: EntropyGroup) -> Iterator[Part]:
    how = f"{group.estimator} m={group.m}" if group.estimator == "sampling" else group.estimator
    yield Heading(f"{group.model or 'model without a name'}, {how}")
    rows: list[Sequence[Cell]] = [
        [f"{b.low:.3f} to {b.high:.3f}", count(b.n), count(b.errors), _rate(b.rate)]
        for b in group.bins
    ]
    rate = group.metrics["rate"]
    rows.append(["all", count(group.n), count(group.errors), _rate(rate)])
    yield Table.of(("entropy", "choices", "wrong", "rate"), rows, align="lrrv")
    cells: list[Sequence[Cell]] = [
        ["mean entropy of right choices", _plain(group.mean_right)],
        ["mean entropy of wrong choices", _plain(group.mean_wrong)],
    ]
    if group.greatest is not None:
        cells.insert(0, [f"greatest of {group.m} samples", _plain(group.greatest)])
    for metric in group.metrics.values():
        if metric is not rate:
            name = metric.kind.heading
            cells.append([name, MetricCell(estimate=metric, unit="grade", name=name)])
    yield Table.of(("measure", "value"), cells, align="lv")


def _rate(estimate: Estimate) -> MetricCell:
    return MetricCell(estimate=estimate, unit="percent", denominator=False)


def _plain(value: float | None) -> str:
    return DASH if value is None else f"{value:.3f}"
