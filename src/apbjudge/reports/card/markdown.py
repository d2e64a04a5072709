"""A judge card as Markdown: everything that the audit found, for a repository or an issue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...audits.card import Card
from ...audits.outcomes import Exhibit, Figure, Measure, Probe
from ..markdown import plain, table
from .figures import (
    EXHIBITS_SHOWN,
    HOW_VERDICTS_ARE_MADE,
    SYMBOLS,
    asked_text,
    bases_text,
    cost_text,
    counts_text,
    figure_text,
    levels_text,
    limit_text,
    many,
    remarks,
    settings_text,
    size_text,
    tally_text,
    value_text,
    verdict_text,
)


def card_markdown(card: Card) -> str:
    """The whole card.

    Args:
        card: The card; its texts are escaped, so that none is read as Markdown or HTML.
    """
    lines = [f"# Judge card: {plain(card.judge)}", "", plain(asked_text(card)), "", *_head(card)]
    lines += ["", "## Verdicts", "", f"{tally_text([p.outcome for p in card.probes])}."]
    lines += ["", *table(("Probe", "Verdict", "Because"), map(_verdict, card.probes))]
    for probe in card.probes:
        lines += ["", *_probe(probe)]
    lines += ["", "## How the verdicts are made", "", HOW_VERDICTS_ARE_MADE]
    return "\n".join(lines) + "\n"


def _head(card: Card) -> Iterator[str]:
    yield f"- Plans: {plain(bases_text(card))}; seed {card.seed}"
    yield f"- Settings: {plain(settings_text(card.settings))}"
    yield f"- Took: {plain(cost_text(card.cost))}"
    yield f"- Made by apbjudge {plain(card.version)}, plan {plain(card.fingerprint)}"
    yield from (f"- Note: {plain(note)}" for note in card.notes)


def _verdict(probe: Probe) -> tuple[str, ...]:
    return probe.title, f"{SYMBOLS[probe.outcome]} {probe.outcome}", probe.because


def _probe(probe: Probe) -> Iterator[str]:
    yield from (f"## {plain(probe.title)}", "", plain(probe.question), "")
    yield f"**{SYMBOLS[probe.outcome]} {probe.outcome}**: {plain(probe.because)}."
    if probe.measures:
        yield from ("", *_measures(probe.measures))
    if probe.figures:
        yield from ("", "Beside it:", "", *_figures(probe.figures))
    for one in probe.tables:
        yield from ("", f"Table: {plain(one.title)}", "", *table(one.columns, one.rows))
    if probe.n_exhibits:
        yield from ("", *_exhibits(probe.exhibits, probe.n_exhibits))
    yield from ("", f"- Took: {plain(cost_text(probe.cost))}")
    notes = (*remarks(probe.measures), *probe.notes)
    yield from (f"- Note: {plain(note)}" for note in notes)


def _measures(measures: Sequence[Measure]) -> list[str]:
    level = levels_text([measure.estimate for measure in measures])
    heads = ("Measure", f"Value [{level}]" if level else "Value", "Allowed", "From", "Verdict")
    return table((*heads, "Most likely fails from"), map(_measure, measures))


def _measure(measure: Measure) -> tuple[str, ...]:
    unit, estimate = measure.unit, measure.estimate
    return (
        measure.name,
        value_text(estimate, unit),
        limit_text(measure.side, measure.limit, unit),
        counts_text(estimate),
        f"{SYMBOLS[measure.outcome]} {verdict_text(measure)}",
        _seen(measure),
    )


def _seen(measure: Measure) -> str:
    size = size_text(measure.detectable, measure.unit)
    return size if measure.detectable is None else f"{size} beyond"


def _figures(figures: Sequence[Figure]) -> list[str]:
    level = levels_text([figure.estimate for figure in figures])
    rows = ((f.name, figure_text(f), counts_text(f.estimate)) for f in figures)
    return table(("Figure", f"Value [{level}]" if level else "Value", "From"), rows)


def _exhibits(exhibits: Sequence[Exhibit], n: int) -> Iterator[str]:
    shown = exhibits[:EXHIBITS_SHOWN]
    yield f"Items that speak against the judge ({len(shown)} of {many(n, 'item')} shown):"
    yield ""
    yield from (f"{i}. {plain(f'{e.name} ({e.arm}): {e.what}')}" for i, e in enumerate(shown, 1))
