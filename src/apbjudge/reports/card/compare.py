"""Two judge cards side by side: as text and as Markdown here, and the page of ``card_html``."""

from __future__ import annotations

from collections.abc import Iterator

from ...audits.comparing import CardComparison, CardSide, MeasurePair, ProbePair
from ...audits.verdicts import Standing
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
    p_text,
    probe_title,
    settings_text,
    standing_word,
    tally_text,
    value_text,
)
from .html import cards_html
from .text import columns, folded


def cards_text(found: CardComparison) -> str:
    """The comparison for a terminal, at most 100 columns wide.

    Args:
        found: The comparison.
    """
    lines = [*folded("", f"{found.size} audit on plans made from {found.rows}", indent=0)]
    for name, side, verdicts in _sides(found):
        lines += folded(name, f"judge {side.judge}: {verdicts}", indent=3)
        lines += folded("", f"{settings_text(side.settings)}; {cost_text(side.cost)}", indent=3)
    lines += ["", *columns([("probe", "A", "B"), *map(_verdicts, found.probes)])]
    for probe in found.probes:
        pairs = [pair for pair in found.measures if pair.probe == probe.name]
        lines += ["", *folded("", probe.title, indent=0)] if pairs else []
        lines += [line for pair in pairs for line in _measure_text(found, pair)]
    for text in (*only_notes(found), HOW_COMPARED):
        lines += ["", *folded("", text, indent=0)]
    return "\n".join(lines) + "\n"


def _sides(found: CardComparison) -> Iterator[tuple[str, CardSide, str]]:
    yield "A", found.first, tally_text([probe.first for probe in found.probes])
    yield "B", found.second, tally_text([probe.second for probe in found.probes])


def _verdicts(probe: ProbePair) -> tuple[str, ...]:
    return probe.title, standing_word(probe.first), standing_word(probe.second)


def _measure_text(found: CardComparison, pair: MeasurePair) -> Iterator[str]:
    allowed = limit_text(pair.side, pair.limit, pair.unit)
    yield from folded("", f"{pair.name}, allowed {allowed}", indent=0)
    sides = (("A", pair.first, pair.first_standing), ("B", pair.second, pair.second_standing))
    for name, estimate, standing in sides:
        yield from folded(f"  {name}", f"{_of_judge(pair, estimate)}; {standing}", indent=9)
    tests = f"p {p_text(pair.p_value)}, adjusted {p_text(pair.adjusted)}"
    words = conclusion(pair, alpha=1 - found.level)
    where = f"over {many(pair.n_shared, 'shared case')}"
    text = f"{difference_text(pair)} {where}; {tests}: {words}"
    yield from folded("  A - B", text, indent=9)


def _of_judge(pair: MeasurePair, estimate: Estimate) -> str:
    return f"{value_text(estimate, pair.unit)}, {counts_text(estimate)}"


def cards_markdown(found: CardComparison) -> str:
    """The comparison as Markdown.

    Args:
        found: The comparison; its texts are escaped.
    """
    title = f"# Judge cards: {plain(found.first.judge)} against {plain(found.second.judge)}"
    asked = f"{found.size.capitalize()} audit on plans made from {found.rows}."
    lines = [title, "", plain(asked), "", *_head(found), "", "## Verdicts", ""]
    lines += table(("Probe", "A", "B"), list(map(_marked, found.probes)))
    lines += ["", "## Measures", "", *_measures(found), ""]
    lines += [line for text in only_notes(found) for line in (plain(text), "")]
    return "\n".join([*lines, HOW_COMPARED]) + "\n"


def _head(found: CardComparison) -> Iterator[str]:
    for name, side, verdicts in _sides(found):
        yield f"- {name}: {plain(side.judge)}: {verdicts}"
        yield f"  - Settings: {plain(settings_text(side.settings))}"
        yield f"  - Took: {plain(cost_text(side.cost))}; apbjudge {plain(side.version)}"


def _with_symbol(standing: Standing | None) -> str:
    """A verdict with its symbol."""
    return f"{'–' if standing is None else SYMBOLS[standing]} {standing_word(standing)}"


def _marked(probe: ProbePair) -> tuple[str, ...]:
    return probe.title, _with_symbol(probe.first), _with_symbol(probe.second)


def _measures(found: CardComparison) -> list[str]:
    if not found.measures:
        return ["The two cards have no measure in common."]
    difference = f"A - B [{100 * found.level:g} % interval]"
    heads = ("Probe", "Measure", "Allowed", "A", "B", difference, "Cases", "p", "Adjusted", "")
    return table(heads, [_measure_row(found, pair) for pair in found.measures])


def _measure_row(found: CardComparison, pair: MeasurePair) -> tuple[str, ...]:
    return (
        probe_title(found, pair),
        pair.name,
        limit_text(pair.side, pair.limit, pair.unit),
        f"{_of_judge(pair, pair.first)}; {_with_symbol(pair.first_standing)}",
        f"{_of_judge(pair, pair.second)}; {_with_symbol(pair.second_standing)}",
        difference_text(pair),
        f"{pair.n_shared:,}",
        p_text(pair.p_value),
        p_text(pair.adjusted),
        conclusion(pair, alpha=1 - found.level),
    )


__all__ = ["cards_html", "cards_markdown", "cards_text"]
