"""The summary of a run: tested models down, figures across; and differences of several judges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..document.model import (
    Cell,
    Document,
    Heading,
    MetricCell,
    Notes,
    Part,
    Table,
    missing,
    packed,
    reasons,
)
from ..document.numbers import money, percent, share
from ..document.text import WIDTH, render_text
from ..records.judgement_table import TRAJECTORY, Totals
from ..statistics.estimates import Estimate
from ..trajectories import trajectory_protocol
from .metrics import CR_BOUNDS, code_of, is_of_codes
from .summary import Summary, SummaryGroup
from .trajectory_metrics import AS_FAILURES

if TYPE_CHECKING:
    from .cascade import CascadeCurve, CurvePoint
    from .panel import Disagreement

POINTS_SHOWN = 11
FEW_CASES = 15
GROUPS_ACROSS = 3


def summary_text(
    summary: Summary, *, width: int = WIDTH, wraps: bool = False, colour: bool = False
) -> str:
    """The summary as text; see ``render_text`` for the options.

    Rates are in percent, Grade on its scale of 0 to 1, costs in the cases' unit.
    """
    return render_text(summary_document(summary), width=width, wraps=wraps, colour=colour)


def summary_document(summary: Summary) -> Document:
    """The summary: judge and settings, a table per protocol and breakdown, and a legend."""
    head = (f"judge {summary.judge}: {_totals(summary)}", *filter(None, [summary.note]))
    parts: list[Part] = [Notes((*head, *summary.warnings))]
    figures = [(name, e) for group in summary.groups for name, e in group.metrics.items()]
    present = {name for name, estimate in figures if estimate.value is not None}
    for block in _blocks(summary.groups):
        parts += [Heading(_title(block[0])), *_tables(block, present)]
    foot: list[str] = []
    if summary.groups:
        foot.append(
            "value [95 % interval], over the scored rows unless /n says otherwise; rates in "
            "percent, differences in percentage points"
        )
    foot += legend(summary)
    for protocol in dict.fromkeys(g.protocol for g in summary.groups if g.form == TRAJECTORY):
        own = {n for group in summary.groups if group.protocol == protocol for n in group.metrics}
        if more := len(own) - len(_main(protocol, [*own])):
            foot.append(f"{more} more figures of {protocol}: apbjudge report, or summary.csv")
    if any(_is_rough(estimate) for _, estimate in figures):
        foot.append(f"intervals from fewer than {FEW_CASES} cases are rough")
    foot += reasons(
        (bounds.note, bounds.name, f"{_title(group)} {group.tested_model}")
        for group in summary.groups
        if (bounds := group.metrics.get(CR_BOUNDS.name)) and not group.by
    )
    return Document((*parts, Notes((*foot, *missing(parts)))))


def legend(summary: Summary) -> list[str]:
    """The short meaning of each figure that has one, in lines of at most ``WIDTH`` characters."""
    own, meanings = summary.codes or {}, dict[str, str]()
    for group in summary.groups:
        for metric in group.metrics.values():
            if group.form != TRAJECTORY and metric.value is not None:
                meaning = own.get(code_of(metric.kind), metric.kind.meaning)
                meanings.setdefault(metric.name, meaning)
    stated = [f"{name}: {meaning}" for name, meaning in meanings.items() if meaning]
    return ["; ".join(line) for line in packed(((text, len(text) + 2) for text in stated), WIDTH)]


def _is_rough(estimate: Estimate) -> bool:
    if estimate.method == "cluster-bootstrap":
        return estimate.n_clusters < FEW_CASES
    return estimate.low is not None and estimate.n_clusters < min(estimate.n_items, FEW_CASES)


def _totals(summary: Summary) -> str:
    totals = summary.totals
    unscored = ", ".join(
        f"{n} {reason}{last_error(totals.last_errors, reason)}"
        for reason, n in sorted(totals.unscored.items())
    )
    parts = [f"{totals.rows} rows, {summary.scored} scored"]
    parts += [f"unscored: {unscored}"] if unscored else []
    if totals.calls or totals.reused:
        parts.append(_calls(totals))
        counts = {"inconsistent": totals.inconsistent, "overridden": totals.overridden}
        parts += [f"{n} {name}" for name, n in counts.items() if n]
    return "; ".join(parts)


def last_error(last_errors: Mapping[str, str], reason: str) -> str:
    """The last error with this reason; empty for bad input, which is reported row by row."""
    text = "" if reason == "bad_input" else last_errors.get(reason, "")
    return f" (last: {text})" if text else ""


def _calls(totals: Totals) -> str:
    text = f"{totals.calls} calls, cost {money(totals.cost_usd)}"
    if totals.unreported:
        text += f" ({totals.unreported} answers stated no usage)"
    if totals.lost:
        text += f" and what {totals.lost} unanswered calls may have cost"
    if totals.cached_tokens:
        cached = totals.cached_tokens / totals.prompt_tokens
        text += f", {cached:.0%} of prompt tokens from the endpoint's cache"
    if totals.reused:
        text += f", {totals.reused} replies of earlier runs used again"
    if totals.lenient_replies:
        text += f", {totals.lenient_replies} replies read leniently"
    return text


def _blocks(groups: tuple[SummaryGroup, ...]) -> Iterator[list[SummaryGroup]]:
    """Groups of one protocol, form and breakdown; in each the best tested models come first."""
    blocks: dict[tuple[object, ...], list[SummaryGroup]] = {}
    for group in groups:
        blocks.setdefault((group.protocol, group.form, *group.by), []).append(group)
    for (_, _, *by), block in blocks.items():
        # groups of a breakdown stay in the order of its values
        yield block if by else sorted(block, key=_rank)


def _rank(group: SummaryGroup) -> float:
    first = next(iter(group.metrics.values())).value
    return 1.0 if first is None else -first


def _title(group: SummaryGroup) -> str:
    is_alone = group.form in (group.protocol, TRAJECTORY)
    title = group.protocol if is_alone else f"{group.protocol} ({group.form})"
    return ", by ".join((title, *group.by))


def _tables(block: list[SummaryGroup], present: set[str]) -> Iterator[Table]:
    """The figures, and those per number of distractors, a row each.

    Breakdowns leave out the rates of error codes, which files of the summary have.
    """
    names = list(dict.fromkeys(name for group in block for name in group.metrics))
    by = list(block[0].by)
    if block[0].form == TRAJECTORY:
        names = _main(block[0].protocol, names)
        if len(block) <= GROUPS_ACROSS:
            yield _down(block, names, present)
            return
    levelled = [name for name in names if "@" in name and block[0].form != TRAJECTORY]
    of_codes = {n for g in block for n, metric in g.metrics.items() if is_of_codes(metric.kind)}
    columns = [n for n in names if n not in levelled and not (by and n in of_codes)]
    more = ["setting"] if any(group.setting for group in block) else []
    rows = [
        [*_lead(group, more), *(_cell(name, group, present) for name in columns)] for group in block
    ]
    align = "l" * (1 + len(more) + len(by)) + "r" + "v" * len(columns)
    table = Table.of(["tested model", *more, *by, "scored", *columns], rows, align=align)
    yield replace(table, leads=2 + len(more) + len(by))
    parts = [name.split("@") for name in levelled]
    if by or not parts:
        return
    of, levels = (list(dict.fromkeys(column)) for column in zip(*parts, strict=True))
    rows = [
        [group.tested_model, level, *(_cell(f"{n}@{level}", group, present) for n in of)]
        for group in block
        for level in levels
    ]
    table = Table.of(["tested model", "distractors", *of], rows, align="lr" + "v" * len(of))
    yield replace(table, leads=2)


def _main(protocol: str, names: Sequence[str]) -> list[str]:
    """The figures of a protocol's first table, and those of trials; all if it lists none."""
    own = trajectory_protocol(protocol)
    main = own.tables[0].metrics if own is not None and own.tables else ()
    return [n for n in names if not main or n in main or n.startswith("pass") or AS_FAILURES in n]


def _down(block: list[SummaryGroup], names: Sequence[str], present: set[str]) -> Table:
    """Figures down and tested models across, since whole trajectories have many figures."""
    heads = [" ".join(filter(None, (g.tested_model, g.setting, *g.by.values()))) for g in block]
    rows: list[list[Cell]] = [["scored", *(f"{group.scored}/{group.n}" for group in block)]]
    rows += [[name, *(_cell(name, group, present) for group in block)] for name in names]
    return Table.of(["", *heads], rows, align="l" + "v" * len(block))


def _lead(group: SummaryGroup, more: Sequence[str]) -> Iterator[str]:
    yield group.tested_model
    yield from (group.setting for _ in more)
    yield from ("not stated" if value is None else value for value in group.by.values())
    yield f"{group.scored}/{group.n}"


def _cell(name: str, group: SummaryGroup, present: set[str]) -> Cell:
    """A figure; a missing one is named only if other groups have it."""
    if (metric := group.metrics.get(name)) is None:
        return ""
    values = "".join(f" {value}" for value in group.by.values())
    place = f"{_title(group)} {group.tested_model}{values}" if name in present else ""
    denominator = metric.value is not None and metric.n_items != group.scored
    return MetricCell.showing(metric, place, denominator=denominator)


# Several judges ----------------------------------------------------------------------------------


def ensemble_text(ensemble: Disagreement | CascadeCurve) -> str:
    """Disagreement of several judges, or costs of their cascade, as text for a terminal."""
    from .panel import Disagreement

    if isinstance(ensemble, Disagreement):
        return render_text(disagreement_document(ensemble))
    text = render_text(cascade_document(ensemble.points, reference=ensemble.reference))
    return f"{text}{ensemble.n_queued} items are left to humans, the most uncertain first\n"


def disagreement_document(disagreement: Disagreement) -> Document:
    """Rates of disagreement: over all judges, and for every two of them."""
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
    from .cascade import threshold_text

    selected = list(points)
    if len(selected) > POINTS_SHOWN:
        shares = [i / (POINTS_SHOWN - 1) for i in range(POINTS_SHOWN)]
        nearest = (min(range(len(points)), key=lambda i: abs(points[i].share - w)) for w in shares)
        selected = [points[i] for i in sorted({0, len(points) - 1, *nearest})]
    rows = [
        (threshold_text(p), percent(p.share, 0), money(p.cost_usd), share(p.n_agree, p.n_compared))
        for p in selected
    ]
    heads = ("threshold", "escalated", "cost", f"agreement with {reference}, where it answered")
    return Document((Table.of(heads, rows),))
