"""Judge cards, alone and side by side, as documents: text for a terminal, Markdown, HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...document.html import document_page
from ...document.markdown import render_markdown
from ...document.model import Cell, Document, Heading, Notes, Paragraph, Part, Table
from ...document.numbers import level_text, number
from ...document.text import WIDTH, render_text
from ...statistics.estimates import Estimate
from ..card import Card
from ..comparison import CardComparison, CardSide, MeasurePair
from ..outcomes import Measure, Outcome, Probe, ProbeItem, ProbeMetric, Unit, limit_text
from . import words

ITEMS_SHOWN = 5
_LEGEND = (
    "Shares in percent, changes in points. From: items/cases. Detects: how far beyond its limit a "
    "true figure must lie to fail with a probability of 80 %. Needs: cases that would have "
    "settled it."
)


def card_text(card: Card) -> str:
    """The short card as text; see ``card_document``."""
    return render_text(card_document(card), width=WIDTH)


def card_document(card: Card) -> Document:
    """The short card: head, outcomes, measures, cost.

    Figures that decide nothing, breakdowns and single items are in the Markdown and HTML cards.
    """
    return _card(card, full=False)


def card_markdown(card: Card) -> str:
    """The whole card as Markdown; its texts are escaped, so that they add no markup."""
    return render_markdown(_card(card, full=True))


def card_html(card: Card) -> str:
    """The whole card as one HTML page without scripts or external resources."""
    return document_page(f"Judge card: {card.judge}", _card(card, full=True))


def cards_text(comparison: CardComparison) -> str:
    """Two cards side by side, for a terminal."""
    return render_text(_cards(comparison), width=WIDTH)


def cards_markdown(comparison: CardComparison) -> str:
    """Two cards side by side, as Markdown; its texts are escaped."""
    return render_markdown(_cards(comparison))


def cards_html(comparison: CardComparison) -> str:
    """Two cards side by side as one HTML page."""
    return document_page(_cards(comparison).title, _cards(comparison))


def _card(card: Card, *, full: bool) -> Document:
    head = (
        f"Plans: {words.bases_text(card)}; seed {card.seed}",
        f"Settings: {words.settings_text(card.settings)}",
        f"Took: {words.cost_text(card.cost)}",
        f"Made by apbjudge {card.version}, plan {card.fingerprint}",
        *(f"Note: {note}" for note in card.notes),
    )
    outcomes = ((p.title, words.with_symbol(p.outcome), p.because) for p in card.probes)
    return Document(
        (
            Paragraph(words.size_of_audit(card)),
            Notes(head),
            Heading("Verdicts"),
            Paragraph(f"{words.tally_text([p.outcome for p in card.probes])}."),
            Table.of(("Probe", "Verdict", "Because"), outcomes, align="flf"),
            *(part for probe in card.probes for part in _probe(probe, full=full)),
            Heading("How the verdicts are made"),
            Notes((_LEGEND, words.VERDICT_RULE)),
        ),
        title=f"Judge card: {card.judge}",
    )


def _probe(probe: Probe, *, full: bool) -> Iterator[Part]:
    if not probe.measures and not full:
        return
    yield Heading(probe.title)
    if full:
        yield Paragraph(probe.question)
        yield Paragraph(f"{words.with_symbol(probe.outcome)}: {probe.because}.")
    if probe.measures:
        yield _measures(probe.measures)
    if full and probe.figures:
        yield Paragraph(f"Other figures, {words.levels_text([f.estimate for f in probe.figures])}:")
        yield _figures(probe.figures)
    for table in probe.tables if full else ():
        yield Paragraph(f"Table: {table.title}")
        yield Table.of(table.columns, table.rows)
    if full and probe.n_examples:
        yield from _items(probe.examples, probe.n_examples)
    notes = (*words.remarks(probe.measures), *(probe.notes if full else ()))
    cost = words.cost_text(probe.cost) if full else words.unscored_text(probe.cost)
    level = words.levels_text([measure.estimate for measure in probe.measures])
    took = f"Took: {cost}" + (f"; {level}" if level else "")
    yield Notes((took, *(f"Note: {note}" for note in notes)))


def _measures(measures: Sequence[Measure]) -> Table:
    heads = ("Measure", "Verdict", "Value", "Allowed", "From", "Detects", "Needs")
    rows = (
        (
            m.name,
            words.with_symbol(m.outcome),
            words.measure_cell(m, measures),
            limit_text(m.side, m.limit, m.unit),
            _counts(m.estimate),
            words.size_text(m.detectable, m.unit),
            "" if m.needed is None else f"{m.needed:,}",
        )
        for m in measures
    )
    return Table.of(heads, rows, align="flvllll")


def _figures(figures: Sequence[ProbeMetric]) -> Table:
    rows = ((f.name, words.figure(f.estimate, f.unit), _counts(f.estimate)) for f in figures)
    return Table.of(("Figure", "Value", "From"), rows, align="fvl")


def _counts(estimate: Estimate) -> str:
    return f"{estimate.n_items}/{estimate.n_clusters}"


def _items(items: Sequence[ProbeItem], n: int) -> Iterator[Part]:
    listed = items[:ITEMS_SHOWN]
    total = words.many(n, "item")
    yield Paragraph(f"Items that speak against the judge ({len(listed)} of {total} shown):")
    yield Notes(tuple(f"{e.name} ({e.run}): {e.what}" for e in listed))


def _cards(comparison: CardComparison) -> Document:
    first, second = comparison.first, comparison.second
    head = (
        *_side("A", first, words.tally_text([probe.first for probe in comparison.probes])),
        *_side("B", second, words.tally_text([probe.second for probe in comparison.probes])),
    )
    probes = (
        (p.title, words.with_symbol(p.first), words.with_symbol(p.second))
        for p in comparison.probes
    )
    return Document(
        (
            Paragraph(
                f"{comparison.size.capitalize()} audit on plans made from {comparison.rows}."
            ),
            Notes(head),
            Heading("Verdicts"),
            Table.of(("Probe", "A", "B"), probes, align="fll"),
            *_differences(comparison),
            Notes((*words.only_notes(comparison), words.HOW_COMPARED)),
        ),
        title=f"Judge cards: {first.judge} against {second.judge}",
    )


def _side(name: str, side: CardSide, outcomes: str) -> Iterator[str]:
    yield f"{name}: {side.judge}: {outcomes}"
    yield f"{name}: settings: {words.settings_text(side.settings)}"
    yield f"{name}: took {words.cost_text(side.cost)}; apbjudge {side.version}"


def _differences(comparison: CardComparison) -> Iterator[Part]:
    if not comparison.measures:
        yield Paragraph("The two cards have no measure in common.")
    level = level_text(comparison.level)
    heads = ("Measure", "Judge", "Value", "From", "p (adjusted)", f"Verdict; of A - B at {level}")
    for probe in comparison.probes:
        pairs = [pair for pair in comparison.measures if pair.probe == probe.name]
        if pairs:
            yield Heading(probe.title)
            rows = (row for pair in pairs for row in _rows(pair, alpha=1 - comparison.level))
            yield replace(Table.of(heads, rows, align="flvlll"), leads=2)


def _rows(pair: MeasurePair, *, alpha: float) -> Iterator[tuple[Cell, ...]]:
    """A row for each judge and one for their difference."""
    limit = limit_text(pair.side, pair.limit, pair.unit)
    yield pair.name, "A", *_own(pair.first, pair.unit, pair.first_outcome)
    yield f"allowed {limit}", "B", *_own(pair.second, pair.unit, pair.second_outcome)
    tests = f"{number(pair.p_value, 'p')} ({number(pair.adjusted, 'p')})"
    difference = words.difference_cell(pair)
    cases = words.many(pair.n_shared, "case")
    yield "", "A - B", difference, cases, tests, words.conclusion(pair, alpha=alpha)


def _own(estimate: Estimate, unit: Unit, outcome: Outcome) -> tuple[Cell, ...]:
    return words.figure(estimate, unit), _counts(estimate), "", words.with_symbol(outcome)
