"""Two judge cards side by side: as text and as Markdown here, and the page of ``card_html``."""

from __future__ import annotations

from collections.abc import Iterator

from ...audits.comparison import CardComparison, CardSide, MeasurePair, ProbePair
from ...audits.outcomes import Outcome
from ...statistics.estimates import Estimate
from ..markdown import plain, table
from .figures import (
    HOW_COMPARED,
    SYMBOLS,
    conclusion,
    cost_text,
    counts_text,
    difference_text,
    limit_text,
    many,
    only_notes,
    outcome_word,
    p_text,
    probe_title,
    settings_text,
    tally_text,
    value_text,
)
from .html import cards_html
from .text import columns, folded


def cards_text(comparison: CardComparison) -> str:
    """The comparison for a terminal, at most 100 columns wide.

    Args:
        comparison: The comparison.
    """
    lines = [*folded("", f"{comparison.size} audit on plans made from {comparison.rows}", indent=0)]
    for name, side, verdicts in _sides(comparison):
        lines += folded(name, f"judge {side.judge}: {verdicts}", indent=3)
        lines += folded("", f"{settings_text(side.settings)}; {cost_text(side.cost)}", indent=3)
    lines += ["", *columns([("probe", "A", "B"), *map(_verdicts, comparison.probes)])]
    for probe in comparison.probes:
        pairs = [pair for pair in comparison.measures if pair.probe == probe.name]
        lines += ["", *folded("", probe.title, indent=0)] if pairs else []
        lines += [line for pair in pairs for line in _measure_text(comparison, pair)]
    for text in (*only_notes(comparison), HOW_COMPARED):
        lines += ["", *folded("", text, indent=0)]
    return "\n".join(lines) + "\n"


def _sides(comparison: CardComparison) -> Iterator[tuple[str, CardSide, str]]:
    yield "A", comparison.first, tally_text([probe.first for probe in comparison.probes])
    yield "B", comparison.second, tally_text([probe.second for probe in comparison.probes])


def _verdicts(probe: ProbePair) -> tuple[str, ...]:
    return probe.title, outcome_word(probe.first), outcome_word(probe.second)


def _measure_text(comparison: CardComparison, pair: MeasurePair) -> Iterator[str]:
    allowed = limit_text(pair.side, pair.limit, pair.unit)
    yield from folded("", f"{pair.name}, allowed {allowed}", indent=0)
    sides = (("A", pair.first, pair.first_outcome), ("B", pair.second, pair.second_outcome))
    for name, estimate, outcome in sides:
        yield from folded(f"  {name}", f"{_of_judge(pair, estimate)}; {outcome}", indent=9)
    tests = f"p {p_text(pair.p_value)}, adjusted {p_text(pair.adjusted)}"
    words = conclusion(pair, alpha=1 - comparison.level)
    where = f"over {many(pair.n_shared, 'shared case')}"
    text = f"{difference_text(pair)} {where}; {tests}: {words}"
    yield from folded("  A - B", text, indent=9)


def _of_judge(pair: MeasurePair, estimate: Estimate) -> str:
    return f"{value_text(estimate, pair.unit)}, {counts_text(estimate)}"


def cards_markdown(comparison: CardComparison) -> str:
    """The comparison as Markdown.

    Args:
        comparison: The comparison; its texts are escaped.
    """
    title = (
        f"# Judge cards: {plain(comparison.first.judge)} against {plain(comparison.second.judge)}"
    )
    asked = f"{comparison.size.capitalize()} audit on plans made from {comparison.rows}."
    lines = [title, "", plain(asked), "", *_head(comparison), "", "## Verdicts", ""]
    lines += table(("Probe", "A", "B"), list(map(_marked, comparison.probes)))
    lines += ["", "## Measures", "", *_measures(comparison), ""]
    lines += [line for text in only_notes(comparison) for line in (plain(text), "")]
    return "\n".join([*lines, HOW_COMPARED]) + "\n"


def _head(comparison: CardComparison) -> Iterator[str]:
    for name, side, verdicts in _sides(comparison):
        yield f"- {name}: {plain(side.judge)}: {verdicts}"
        yield f"  - Settings: {plain(settings_text(side.settings))}"
        yield f"  - Took: {plain(cost_text(side.cost))}; apbjudge {plain(side.version)}"


def _with_symbol(outcome: Outcome | None) -> str:
    """A verdict with its symbol."""
    return f"{'–' if outcome is None else SYMBOLS[outcome]} {outcome_word(outcome)}"


def _marked(probe: ProbePair) -> tuple[str, ...]:
    return probe.title, _with_symbol(probe.first), _with_symbol(probe.second)


def _measures(comparison: CardComparison) -> list[str]:
    if not comparison.measures:
        return ["The two cards have no measure in common."]
    difference = f"A - B [{100 * comparison.level:g} % interval]"
    heads = ("Probe", "Measure", "Allowed", "A", "B", difference, "Cases", "p", "Adjusted", "")
    return table(heads, [_measure_row(comparison, pair) for pair in comparison.measures])


def _measure_row(comparison: CardComparison, pair: MeasurePair) -> tuple[str, ...]:
    return (
        probe_title(comparison, pair),
        pair.name,
        limit_text(pair.side, pair.limit, pair.unit),
        f"{_of_judge(pair, pair.first)}; {_with_symbol(pair.first_outcome)}",
        f"{_of_judge(pair, pair.second)}; {_with_symbol(pair.second_outcome)}",
        difference_text(pair),
        f"{pair.n_shared:,}",
        p_text(pair.p_value),
        p_text(pair.adjusted),
        conclusion(pair, alpha=1 - comparison.level),
    )


__all__ = ["cards_html", "cards_markdown", "cards_text"]
