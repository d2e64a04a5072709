"""A judge card, and two side by side, as Markdown: for a repository or an issue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...audits.card import Card
from ...audits.comparison import CardComparison, MeasurePair
from ...audits.outcomes import Figure, Measure, Outcome, Probe
from ...statistics.estimates import Estimate
from ..document import Document, Heading, Notes, Paragraph, Part, Table
from ..markdown import render_markdown
from ..numbers import DASH, count, many
from .figures import (
    EXHIBITS_SHOWN,
    HOW_COMPARED,
    HOW_VERDICTS_ARE_MADE,
    SYMBOLS,
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
    probe_title,
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
    head = (
        f"Plans: {bases_text(card)}; seed {card.seed}",
        f"Settings: {settings_text(card.settings)}",
        f"Took: {cost_text(card.cost)}",
        f"Made by apbjudge {card.version}, plan {card.fingerprint}",
        *(f"Note: {note}" for note in card.notes),
    )
    verdicts = [(p.title, f"{SYMBOLS[p.outcome]} {p.outcome}", p.because) for p in card.probes]
    parts: list[Part] = [
        Paragraph(asked_text(card)),
        Notes(head),
        Heading("Verdicts"),
        Paragraph(f"{tally_text([probe.outcome for probe in card.probes])}."),
        Table.of(("Probe", "Verdict", "Because"), verdicts),
        *(part for probe in card.probes for part in _probe(probe)),
        Heading("How the verdicts are made"),
        Paragraph(HOW_VERDICTS_ARE_MADE),
    ]
    return render_markdown(Document(tuple(parts), title=f"Judge card: {card.judge}"))


def _probe(probe: Probe) -> Iterator[Part]:
    yield Heading(probe.title)
    yield Paragraph(probe.question)
    yield Paragraph(f"{SYMBOLS[probe.outcome]} {probe.outcome}: {probe.because}.")
    if probe.measures:
        heads = ("Measure", _value_head(probe.measures), "Allowed", "From", "Verdict")
        yield Table.of((*heads, "Most likely fails from"), map(_measure, probe.measures))
    if probe.figures:
        yield Paragraph("Beside it:")
        rows = [
            (f.name, value_text(f.estimate, f.unit), counts_text(f.estimate)) for f in probe.figures
        ]
        yield Table.of(("Figure", _value_head(probe.figures), "From"), rows)
    for table in probe.tables:
        yield Paragraph(f"Table: {table.title}")
        yield Table.of(table.columns, table.rows)
    if probe.n_exhibits:
        shown = probe.exhibits[:EXHIBITS_SHOWN]
        of = f"{len(shown)} of {many(probe.n_exhibits, 'item')}"
        yield Paragraph(f"Items that speak against the judge ({of} shown):")
        yield Notes(tuple(f"{one.name} ({one.arm}): {one.what}" for one in shown))
    notes = (f"Note: {note}" for note in (*remarks(probe.measures), *probe.notes))
    yield Notes((f"Took: {cost_text(probe.cost)}", *notes))


def _value_head(values: Sequence[Measure] | Sequence[Figure]) -> str:
    level = levels_text([value.estimate for value in values])
    return f"Value [{level}]" if level else "Value"


def _measure(measure: Measure) -> tuple[str, ...]:
    unit, estimate = measure.unit, measure.estimate
    size = size_text(measure.detectable, unit)
    return (
        measure.name,
        value_text(estimate, unit),
        limit_text(measure.side, measure.limit, unit),
        counts_text(estimate),
        f"{SYMBOLS[measure.outcome]} {verdict_text(measure)}",
        size if measure.detectable is None else f"{size} beyond",
    )


def cards_markdown(comparison: CardComparison) -> str:
    """The comparison as Markdown; its texts are escaped."""
    sides = {"A": comparison.first, "B": comparison.second}
    head = [f"{name}: {side.judge}" for name, side in sides.items()]
    for i, outcomes in enumerate(
        ([p.first for p in comparison.probes], [p.second for p in comparison.probes])
    ):
        head[i] += f": {tally_text(outcomes)}"
    for name, side in sides.items():
        head.append(f"Settings of {name}: {settings_text(side.settings)}")
        head.append(f"{name} took: {cost_text(side.cost)}; apbjudge {side.version}")
    verdicts = [(p.title, _marked(p.first), _marked(p.second)) for p in comparison.probes]
    measures: Part = Paragraph("The two cards have no measure in common.")
    if comparison.measures:
        difference = f"A - B [{100 * comparison.level:g} % interval]"
        heads = ("Probe", "Measure", "Allowed", "A", "B", difference, "Cases", "p", "Adjusted", "")
        measures = Table.of(heads, [_pair(comparison, pair) for pair in comparison.measures])
    title = f"Judge cards: {comparison.first.judge} against {comparison.second.judge}"
    parts: list[Part] = [
        Paragraph(f"{comparison.size.capitalize()} audit on plans made from {comparison.rows}."),
        Notes(tuple(head)),
        Heading("Verdicts"),
        Table.of(("Probe", "A", "B"), verdicts),
        Heading("Measures"),
        measures,
        *map(Paragraph, only_notes(comparison)),
        Paragraph(HOW_COMPARED),
    ]
    return render_markdown(Document(tuple(parts), title=title))


def _marked(outcome: Outcome | None) -> str:
    return f"{DASH} not asked" if outcome is None else f"{SYMBOLS[outcome]} {outcome}"


def _pair(comparison: CardComparison, pair: MeasurePair) -> tuple[str, ...]:
    def side(estimate: Estimate, outcome: Outcome) -> str:
        return f"{value_text(estimate, pair.unit)}, {counts_text(estimate)}; {_marked(outcome)}"

    return (
        probe_title(comparison, pair),
        pair.name,
        limit_text(pair.side, pair.limit, pair.unit),
        side(pair.first, pair.first_outcome),
        side(pair.second, pair.second_outcome),
        difference_text(pair),
        count(pair.n_shared),
        p_text(pair.p_value),
        p_text(pair.adjusted),
        conclusion(pair, alpha=1 - comparison.level),
    )
