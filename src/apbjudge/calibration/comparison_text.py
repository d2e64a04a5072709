"""Two runs side by side as text: differences, and the sizes that could be detected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..document.model import (
    Cell,
    Document,
    Heading,
    MetricCell,
    Notes,
    Number,
    Part,
    Table,
    missing,
    reasons,
)
from ..document.numbers import DASH, level_text, number, signed, size
from ..statistics.metric import Unit
from ..statistics.paired import Difference, Family
from .results import Comparison, Side

_NAMES_SHOWN = 3
_FAMILIES: tuple[tuple[Family, str, str], ...] = (
    ("primary", "stated beforehand", "Holm"),
    ("exploratory", "exploration", "Benjamini and Hochberg"),
)


def comparison_document(comparison: Comparison) -> Document:
    """The differences of all figures, the primary metrics first."""
    parts: list[Part] = [Notes(tuple(_head(comparison))), *_flips(comparison)]
    differences = comparison.differences
    for family, title, method in _FAMILIES:
        members = [d for d in differences if d.family == family]
        if members:
            tested = sum(d.p_value is not None for d in members)
            over = f"p adjusted by {method} for {tested} figures" if tested > 1 else "one figure"
            parts += [Heading(f"{title}: {over}"), _table(members, comparison.level)]
    foot: list[str] = []
    if differences:
        rough = reasons(
            (d.difference.note, d.name, "")
            for d in differences
            if d.difference.low is not None and d.difference.note
        )
        foot = [
            (
                "rates in percent, grades and F1 from 0 to 1; intervals and p are of each figure "
                "alone; "
                "detectable: the smallest true difference found with a chance of 80 %"
            ),
            *(f"note: {line}" for line in rough),
        ]
    foot += missing(parts)
    foot += [f"note: {note}" for note in comparison.notes]
    return Document((*parts, Notes(tuple(foot))))


def _unit(of: Difference) -> Unit:
    return "grade" if _is_count(of) else of.kind.unit


def _is_count(of: Difference) -> bool:
    """True if the figure is not a rate but a count or ratio of counts, which may be above 1."""
    return of.kind.unit in {"cost", "count"}


def _head(comparison: Comparison) -> Iterator[str]:
    yield from (_side("A", comparison.first), _side("B", comparison.second))
    if comparison.differing:
        yield f"different: {', '.join(comparison.differing)}"
    else:
        yield "different: nothing that the rows state; see manifest.json of both runs"
    only = f"{comparison.first.n_only} rows only in A, {comparison.second.n_only} only in B"
    yield f"{comparison.n_pairs} pairs, by {' and '.join(comparison.paired_on)}; {only}"
    n_others = {"queries": comparison.n_other_content, "replies": comparison.n_other_response}
    if any(n_others.values()):
        counts = " and ".join(
            f"{n} pairs have different {what}" for what, n in n_others.items() if n
        )
        yield f"warning: {counts}: what differs below may come from that"
    yield (
        f"{comparison.n_compared} pairs are compared; left out without verdict: "
        f"{comparison.n_first_unscored} by A, {comparison.n_second_unscored} by B, "
        f"{comparison.n_both_unscored} by both"
    )


def _side(name: str, side: Side) -> str:
    parts = [f"judge {side.judge}"]
    if side.rubrics:
        parts.append(f"rubric {_names(side.rubrics, 'rubrics')}")
    parts.append(f"tested {_names(side.tested_models, 'models')}")
    if any(side.settings):
        parts.append(f"setting {_names(side.settings, 'settings')}")
    return (
        f"{name}  {side.source}: {', '.join(parts)}; {side.n_scored} of {side.n_rows} rows scored"
    )


def _names(names: Sequence[str | None], what: str) -> str:
    if len(names) > _NAMES_SHOWN:
        return f"{len(names)} {what}"
    return ", ".join("not stated" if name is None else name for name in names)


def _flips(comparison: Comparison) -> list[Part]:
    flips = comparison.flips
    if not comparison.n_compared:
        return [Notes(("no pair has a verdict by both",))]
    if flips is None:
        return []
    rows = (
        ("A correct", str(flips.both), str(flips.first_only)),
        ("A incorrect", str(flips.second_only), str(flips.neither)),
    )
    table = Table.of(("", "B correct", "B incorrect"), rows, align="lrr")
    if flips.test is None:
        shared = f"{comparison.n_clusters} {comparison.cluster} in {comparison.n_compared} pairs"
        note = f"pairs share cases ({shared}), so McNemar's test does not apply: see below"
    else:
        p_mid, p_exact = (number(p, "p") for p in (flips.test.p_mid, flips.test.p_exact))
        note = (
            f"pairs on which they differ: {flips.first_only + flips.second_only}; McNemar's test: "
            f"p {p_mid} (mid-p), {p_exact} (exact)"
        )
    return [table, Notes((note,))]


def _table(members: Sequence[Difference], level: float) -> Table:
    rows: list[list[Cell]] = [
        [
            d.name,
            Number(d.first.value, _unit(d)),
            Number(d.second.value, _unit(d)),
            MetricCell(estimate=d.difference, unit=signed(_unit(d)), name=d.name),
            _conclusion(d, alpha=1 - level),
            _detectable(d),
            f"{number(d.p_value, 'p')} ({number(d.adjusted, 'p')})",
        ]
        for d in members
    ]
    of = f"A - B [{level_text(level)} interval]"
    return Table.of(("", "A", "B", of, "", "detectable", "p (adjusted)"), rows)


def _conclusion(d: Difference, *, alpha: float) -> str:
    """The conclusion from a difference with its adjusted p-value, in words."""
    estimate = d.difference
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return "no interval"
    if estimate.low <= 0 <= estimate.high:
        return "no difference seen"
    if d.adjusted is not None and d.adjusted >= alpha:
        return "not clear among several figures"
    return "A is higher" if estimate.value > 0 else "B is higher"


def _detectable(d: Difference) -> str:
    if d.detectable is None:
        return DASH
    return "no size" if d.detectable >= 1 and not _is_count(d) else size(d.detectable, _unit(d))
