"""The summary of a run: figures down, tested models across; and what several judges differ in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..judge.summary import Group, Summary
from ..records.judgement_table import Totals
from ..statistics.estimates import Estimate
from .document import Cell, Document, Figure, Heading, Notes, Part, Table, missing
from .numbers import Unit, money, percent, share
from .text import render_text

if TYPE_CHECKING:
    from ..judge.cascade import CascadeCurve, CurvePoint
    from ..judge.panel import Disagreement

MODELS_ACROSS = 3
POINTS_SHOWN = 11
FEW_CASES = 15
_UNITS: dict[str, Unit] = {
    "Grade": "grade",
    "C_all": "cost",
    "C_pass": "cost",
    "C_com": "cost",
    "TC": "count",
}


def summary_text(summary: Summary) -> str:
    """The summary as text.

    Rates are in percent, Grade on its scale of 0 to 1, costs in the cases' unit.
    """
    return render_text(_document(summary))


def _document(summary: Summary) -> Document:
    head = (f"judge {summary.judge}: {_totals(summary)}", *filter(None, [summary.note]))
    parts: list[Part] = [Notes((*head, *summary.warnings))]
    figures = [(name, e) for group in summary.groups for name, e in group.figures.items()]
    present = {name for name, estimate in figures if estimate.value is not None}
    for block in _blocks(summary.groups):
        names = dict.fromkeys(name for group in block for name in group.figures)
        rows = [[name, *(_cell(name, group, present) for group in block)] for name in names]
        heads = ["", *(group.tested_model for group in block)]
        parts += [Heading(_title(block[0])), Table.of(heads, rows)]
    foot: list[str] = []
    if summary.groups:
        foot.append("value [95 % interval] /n; rates in percent, differences in percentage points")
    if any(_is_rough(estimate) for _, estimate in figures):
        foot.append(f"intervals from fewer than {FEW_CASES} cases are rough")
    return Document((*parts, Notes((*foot, *missing(parts)))))


def _is_rough(estimate: Estimate) -> bool:
    if estimate.method == "cluster-bootstrap":
        return estimate.n_clusters < FEW_CASES
    return estimate.low is not None and estimate.n_clusters < min(estimate.n_items, FEW_CASES)


def _totals(summary: Summary) -> str:
    totals = summary.totals
    unscored = ", ".join(f"{n} {reason}" for reason, n in sorted(totals.unscored.items()))
    parts = [f"{totals.rows} rows, {summary.scored} scored"]
    parts += [f"unscored: {unscored}"] if unscored else []
    if totals.calls or totals.reused:
        parts.append(_calls(totals))
        parts.append(f"{totals.inconsistent} inconsistent, {totals.overridden} overridden")
    return "; ".join(parts)


def _calls(totals: Totals) -> str:
    text = f"{totals.calls} calls, cost {money(totals.cost_usd)}"
    if totals.lost:
        text += f" and what {totals.lost} unanswered calls may have cost"
    if totals.cached_tokens:
        cached = totals.cached_tokens / totals.prompt_tokens
        text += f", {cached:.0%} of prompt tokens from the endpoint's cache"
    if totals.reused:
        text += f", {totals.reused} replies of earlier runs used again"
    return text


def _blocks(groups: tuple[Group, ...]) -> Iterator[list[Group]]:
    """Groups of one protocol, form and breakdown value, a few tested models at a time."""
    blocks: dict[tuple[object, ...], list[Group]] = {}
    for group in groups:
        blocks.setdefault((group.protocol, group.form, *group.by.items()), []).append(group)
    for block in blocks.values():
        for at in range(0, len(block), MODELS_ACROSS):
            yield block[at : at + MODELS_ACROSS]


def _title(group: Group) -> str:
    title = group.protocol if group.protocol == group.form else f"{group.protocol} ({group.form})"
    for field, value in group.by.items():
        title += f", {field} {'not stated' if value is None else value}"
    return title


def _cell(name: str, group: Group, present: set[str]) -> Cell:
    """A figure; where it is missing, its place is named only if other groups have it."""
    if (estimate := group.figures.get(name)) is None:
        return ""
    place = f"{_title(group)} {group.tested_model}" if name in present else ""
    return Figure(estimate=estimate, unit=_UNITS.get(name, "percent"), name=name, place=place)


# Several judges ----------------------------------------------------------------------------------


def ensemble_text(ensemble: Disagreement | CascadeCurve) -> str:
    """How often several judges disagree, or what their cascade costs, for a terminal."""
    from ..judge.panel import Disagreement

    if isinstance(ensemble, Disagreement):
        return render_text(disagreement_document(ensemble))
    text = render_text(cascade_document(ensemble.points, reference=ensemble.reference))
    return f"{text}{ensemble.n_queued} items are left to humans, the most uncertain first\n"


def disagreement_document(disagreement: Disagreement) -> Document:
    """How often judges differ: over all, and for every two of them."""
    d = disagreement
    of = f"{d.n_shared} items with two or more verdicts ({d.n_items} items in all)"
    lines = [f"judges are not unanimous on {d.n_split} of {of}"]
    for pair in d.pairs:
        agree = (
            f"agree on {share(pair.n_agree, pair.n_items)}"
            if pair.n_items
            else "no item has a verdict of both"
        )
        lines.append(f"  {pair.first} and {pair.second}: {agree}")
    return Document((Notes(tuple(lines)),))


def cascade_document(points: Sequence[CurvePoint], *, reference: str) -> Document:
    """At most ``POINTS_SHOWN`` thresholds, from no item escalated to all, evenly by share."""
    from ..judge.cascade import threshold_text

    shown = list(points)
    if len(shown) > POINTS_SHOWN:
        wanted = [i / (POINTS_SHOWN - 1) for i in range(POINTS_SHOWN)]
        nearest = (min(range(len(points)), key=lambda i: abs(points[i].share - w)) for w in wanted)
        shown = [points[i] for i in sorted({0, len(points) - 1, *nearest})]
    rows = [
        (threshold_text(p), percent(p.share, 0), money(p.cost_usd), share(p.n_agree, p.n_compared))
        for p in shown
    ]
    heads = ("threshold", "escalated", "cost", f"agreement with {reference}, where it answered")
    return Document((Table.of(heads, rows),))
