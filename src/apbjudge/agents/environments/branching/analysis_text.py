"""Whether a model errs where it doubts, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....document.model import Cell, Document, Heading, MetricCell, Notes, Part, Table, missing
from ....document.numbers import DASH, count
from ....statistics.estimates import Estimate
from .analysis import EntropyGroup, EntropyReport


def entropy_document(report: EntropyReport) -> Document:
    """Bins and measures of each group, and what was left out."""
    parts: list[Part] = []
    for group in report.groups:
        parts += _group(group, report.unit)
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


def _group(group: EntropyGroup, unit: str) -> Iterator[Part]:
    how = f"{group.estimator} m={group.m}" if group.estimator == "sampling" else group.estimator
    yield Heading(f"{group.model or 'model without a name'}, {how}")
    rows: list[Sequence[Cell]] = [
        [f"{b.low:.3f} to {b.high:.3f}", count(b.n), count(b.errors), _rate(b.rate)]
        for b in group.bins
    ]
    rows.append(["all", count(group.n), count(group.errors), _rate(group.rate)])
    yield Table.of(("entropy", "choices", "wrong", "rate"), rows, align="lrrv")
    cells: list[Sequence[Cell]] = [
        ["mean entropy of right choices", _plain(group.mean_right)],
        ["mean entropy of wrong choices", _plain(group.mean_wrong)],
        ["AUROC", _named("AUROC", group.auroc)],
        ["AUROC within cases", _named("AUROC within cases", group.auroc_within)],
        ["AUROC of the position", _named("AUROC of the position", group.auroc_position)],
        [f"rise of the rate per {unit[:-1]}", _named("rise", group.slope)],
        ["the same, position taken out", _named("rise, position out", group.slope_adjusted)],
    ]
    if group.greatest is not None:
        cells.insert(0, [f"greatest of {group.m} samples", _plain(group.greatest)])
    if (first := group.first_wrong) is not None:
        cells += [
            ["first wrong choice: by entropy", _named("by entropy", first.by_score)],
            ["… in the plan's order", _named("in the plan's order", first.by_position)],
            ["… in random order", _named("in random order", first.at_random)],
            ["… places saved against random", _named("places saved", first.saved)],
        ]
    yield Table.of(("measure", "value"), cells, align="lv")


def _rate(estimate: Estimate) -> MetricCell:
    return MetricCell(estimate=estimate, unit="percent", denominator=False)


def _named(name: str, estimate: Estimate) -> MetricCell:
    return MetricCell(estimate=estimate, unit="grade", name=name)


def _plain(value: float | None) -> str:
    return DASH if value is None else f"{value:.3f}"
