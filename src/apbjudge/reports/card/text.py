"""A judge card, and two side by side, as text for a terminal, at most 100 columns wide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from ...audits.card import Card
from ...audits.comparison import CardComparison, MeasurePair
from ...audits.outcomes import Measure, Probe
from ...errors import visible
from ..numbers import many
from .figures import (
    HOW_COMPARED,
    HOW_VERDICTS_ARE_MADE,
    asked_text,
    bases_text,
    conclusion,
    cost_text,
    counts_text,
    difference_text,
    levels_text,
    limit_text,
    only_notes,
    p_text,
    settings_text,
    size_text,
    tally_text,
    unscored_text,
    value_text,
)

WIDTH = 100
_GAP = "  "
_LEAST = 12
_LEGEND = (
    "shares in percent, changes in points; from: items/cases; sees: how many points beyond its "
    "limit a true figure must lie to fail with a chance of 80 %; needs: cases that would have "
    "settled it"
)


def card_text(card: Card) -> str:
    """The card in short: head, verdicts, measures, what it took.

    Shares are in percent, changes in points with their sign; the interval stands in brackets.
    Exhibits, figures that decide nothing and breakdowns are in the Markdown and HTML cards.

    Args:
        card: The card.
    """
    verdicts = [(probe.outcome, probe.title, probe.because) for probe in card.probes]
    lines = [
        *folded("judge", card.judge),
        *folded("asked", asked_text(card)),
        *folded("plans", f"{bases_text(card)}; seed {card.seed}"),
        *folded("settings", settings_text(card.settings)),
        *folded("took", f"{cost_text(card.cost)}; apbjudge {card.version}"),
        *folded("verdicts", tally_text([probe.outcome for probe in card.probes])),
        "",
    ]
    if verdicts:
        lines += columns([("verdict", "probe", "because"), *verdicts], last=True)
    for probe in card.probes:
        if probe.measures:
            lines += ["", *_measures(probe)]
    lines += ["", *wrap(_LEGEND, WIDTH), *wrap(HOW_VERDICTS_ARE_MADE, WIDTH)]
    for note in card.notes:
        lines += folded("note:", note, indent=6)
    return "\n".join(lines) + "\n"


def _measures(probe: Probe) -> list[str]:
    level = levels_text([measure.estimate for measure in probe.measures])
    about = f"{probe.title}: {unscored_text(probe.cost)}{f'; {level}' if level else ''}"
    head = folded("", about, indent=0)
    names = ("measure", "value", "allowed", "from", "verdict", "sees", "needs")
    return [*head, *columns([names, *map(_row, probe.measures)])]


def _row(measure: Measure) -> tuple[str, ...]:
    unit, estimate = measure.unit, measure.estimate
    return (
        measure.name,
        value_text(estimate, unit, short=True),
        limit_text(measure.side, measure.limit, unit),
        f"{estimate.n_items}/{estimate.n_clusters}",
        measure.outcome,
        size_text(measure.detectable, unit).removesuffix(" pts"),
        "" if measure.needed is None else f"{measure.needed:,}",
    )


def cards_text(comparison: CardComparison) -> str:
    """The comparison for a terminal, at most 100 columns wide."""
    lines = [*folded("", f"{comparison.size} audit on plans made from {comparison.rows}", indent=0)]
    for name, side, outcomes in (
        ("A", comparison.first, [probe.first for probe in comparison.probes]),
        ("B", comparison.second, [probe.second for probe in comparison.probes]),
    ):
        lines += folded(name, f"judge {side.judge}: {tally_text(outcomes)}", indent=3)
        lines += folded("", f"{settings_text(side.settings)}; {cost_text(side.cost)}", indent=3)
    rows = [(p.title, p.first or "not asked", p.second or "not asked") for p in comparison.probes]
    lines += ["", *columns([("probe", "A", "B"), *rows])]
    for probe in comparison.probes:
        pairs = [pair for pair in comparison.measures if pair.probe == probe.name]
        lines += ["", *folded("", probe.title, indent=0)] if pairs else []
        lines += [line for pair in pairs for line in _pair(comparison, pair)]
    for text in (*only_notes(comparison), HOW_COMPARED):
        lines += ["", *folded("", text, indent=0)]
    return "\n".join(lines) + "\n"


def _pair(comparison: CardComparison, pair: MeasurePair) -> Iterator[str]:
    allowed = limit_text(pair.side, pair.limit, pair.unit)
    yield from folded("", f"{pair.name}, allowed {allowed}", indent=0)
    sides = (("A", pair.first, pair.first_outcome), ("B", pair.second, pair.second_outcome))
    for name, estimate, outcome in sides:
        yield from folded(
            f"  {name}",
            f"{value_text(estimate, pair.unit)}, {counts_text(estimate)}; {outcome}",
            indent=9,
        )
    tests = f"p {p_text(pair.p_value)}, adjusted {p_text(pair.adjusted)}"
    words = conclusion(pair, alpha=1 - comparison.level)
    where = f"over {many(pair.n_shared, 'shared case')}"
    text = f"{difference_text(pair)} {where}; {tests}: {words}"
    yield from folded("  A - B", text, indent=9)


def folded(label: str, text: str, *, indent: int = 10) -> list[str]:
    """A labelled text over as many lines as it takes; nothing in it moves the cursor.

    Args:
        label: Stands before the first line.
        text: Any text.
        indent: Columns for the label.
    """
    body = wrap(visible(text), WIDTH - indent) or [""]
    heads = [label, *[""] * (len(body) - 1)]
    return [f"{h.ljust(indent)}{line}".rstrip() for h, line in zip(heads, body, strict=True)]


def columns(rows: Sequence[Sequence[str]], *, last: bool = False) -> list[str]:
    """Rows in columns; the first, or else the last, folds to what the others leave of the line.

    Args:
        rows: Cells by row, all of one length, the heading first.
        last: Whether the last column folds in place of the first; others are cut short where
            they would leave it nothing.
    """
    shown = [[visible(text) for text in row] for row in rows]
    widths = [max(len(row[i]) for row in shown) for i in range(len(shown[0]))]
    folds = len(widths) - 1 if last else 0
    most = (WIDTH - _LEAST) // (len(widths) - 1) - len(_GAP)
    widths = [w if i == folds or not last else min(w, most) for i, w in enumerate(widths)]
    rest = WIDTH - sum(widths) + widths[folds] - len(_GAP) * (len(widths) - 1)
    widths[folds] = min(widths[folds], max(_LEAST, rest))
    return [line for row in shown for line in _folded_row(row, widths)]


def _folded_row(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    cells = [
        wrap(text, width, break_on_hyphens=False) or [""]
        for text, width in zip(row, widths, strict=True)
    ]
    for at in range(max(map(len, cells))):
        parts = [cell[at] if at < len(cell) else "" for cell in cells]
        yield _GAP.join(p.ljust(w) for p, w in zip(parts, widths, strict=True)).rstrip()
