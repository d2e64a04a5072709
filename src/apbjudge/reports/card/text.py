"""A judge card as text for a terminal, at most 100 columns wide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from ...audits.card import Card
from ...audits.outcomes import Measure, Probe
from ...errors import visible
from .figures import (
    HOW_VERDICTS_ARE_MADE,
    asked_text,
    bases_text,
    cost_text,
    levels_text,
    limit_text,
    settings_text,
    size_text,
    tally_text,
    unscored_text,
    value_text,
)

WIDTH = 100
_GAP = "  "
_LEAST = 12


def card_text(card: Card) -> str:
    """The card in short: head, verdicts, measures, what it took.

    Shares are in percent, changes in points with their sign; the interval stands in brackets.
    Exhibits, figures that decide nothing and breakdowns are in the Markdown and HTML cards.

    Args:
        card: The card.
    """
    lines = [*_head(card), "", *_verdicts(card.probes)]
    for probe in card.probes:
        if probe.measures:
            lines += ["", *_measures(probe)]
    lines += ["", *_foot(card)]
    return "\n".join(lines) + "\n"


def _head(card: Card) -> Iterator[str]:
    yield from folded("judge", card.judge)
    yield from folded("asked", asked_text(card))
    yield from folded("plans", f"{bases_text(card)}; seed {card.seed}")
    yield from folded("settings", settings_text(card.settings))
    yield from folded("took", f"{cost_text(card.cost)}; apbjudge {card.version}")
    yield from folded("verdicts", tally_text([probe.outcome for probe in card.probes]))


def _verdicts(probes: Sequence[Probe]) -> list[str]:
    rows = [(probe.outcome, probe.title, probe.because) for probe in probes]
    return columns([("verdict", "probe", "because"), *rows], last=True) if rows else []


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


def _foot(card: Card) -> Iterator[str]:
    legend = (
        "shares in percent, changes in points; from: items/cases; sees: how many points beyond its "
        "limit a true figure must lie to fail with a chance of 80 %; needs: cases that would have "
        "settled it"
    )
    yield from wrap(legend, WIDTH)
    yield from wrap(HOW_VERDICTS_ARE_MADE, WIDTH)
    for note in card.notes:
        yield from folded("note:", note, indent=6)


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
