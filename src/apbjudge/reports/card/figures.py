"""The words and numbers of a judge card, as text, Markdown and HTML share them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...audits.card import Card
from ...audits.comparison import CardComparison, MeasurePair
from ...audits.outcomes import Cost, Measure, Outcome, Side, Unit
from ...statistics.estimates import Estimate
from .. import numbers
from ..numbers import DASH, count, many

UNITS: Mapping[Unit, numbers.Unit] = {"share": "percent", "points": "points", "plain": "grade"}
OUTCOMES: tuple[Outcome, ...] = ("passes", "fails", "could not tell")
SYMBOLS: Mapping[Outcome, str] = {"passes": "✓", "fails": "✗", "could not tell": "?"}
EXHIBITS_SHOWN = 5
_LONGEST = 60
HOW_VERDICTS_ARE_MADE = (
    "A measure passes when its whole interval keeps to the limit, fails when its whole interval "
    "lies beyond it, and else could not be told; a probe fails with any of its measures and "
    "passes with all of them. "
    "The intervals of a probe with m measures have the level 1 - 0.05 / m, so that a judge whose "
    "true figures keep to all limits fails a probe with a chance of at most 2.5 %, and one with a "
    "true figure beyond its limit passes with a chance of at most 2.5 %, as far as the intervals "
    "hold."
)
HOW_COMPARED = (
    "Differences are A less B over the cases that both figures are about, each case weighing as "
    "much as was asked of it, with intervals of their own; p is two-sided, and adjusted by Holm "
    "for all measures together. "
    "A difference that is not seen may still be there: the last words say which one would have "
    "been found with a chance of 80 %."
)

_HANDLING = frozenset(
    "model api_base transport vision max_images max_image_bytes timeout_s deadline_s outage_s "
    "retries max_concurrency rpm tpm price_input price_output price_cached lead".split()
)
"""Settings that move no verdict, or are shown elsewhere."""


def with_unit(text: str, unit: Unit) -> str:
    """A number with its unit behind it."""
    return text + {"share": " %", "points": " pts", "plain": ""}[unit]


def value_text(estimate: Estimate, unit: Unit, *, short: bool = False) -> str:
    """A figure with its interval, ``93.3 % [80.1, 98.0]``; ``short`` leaves the unit out."""
    if estimate.value is None:
        return DASH
    value = numbers.number(estimate.value, UNITS[unit])
    ends = numbers.interval(estimate, UNITS[unit]) or "[no interval]"
    return f"{value if short else with_unit(value, unit)} {ends}"


def limit_text(side: Side, limit: float, unit: Unit) -> str:
    """What is allowed: ``at least 70.0 %``, ``within 10.0 pts``."""
    text = numbers.number(limit, UNITS[unit])
    return f"{side} {with_unit(text.lstrip('+') if side == 'within' else text, unit)}"


def size_text(value: float | None, unit: Unit) -> str:
    """A size without direction, such as that of a difference which would have been seen."""
    text = DASH if value is None else numbers.size(value, UNITS[unit])
    return text.replace(" points", " pts")


def counts_text(estimate: Estimate) -> str:
    """The denominators."""
    return f"{many(estimate.n_items, 'item')} in {many(estimate.n_clusters, 'case')}"


def verdict_text(measure: Measure) -> str:
    """The verdict, with what it would have needed where it could not be told."""
    if measure.needed is None:
        return measure.outcome
    return f"{measure.outcome} (would need {many(measure.needed, 'case')})"


def remarks(measures: Sequence[Measure]) -> list[str]:
    """What makes figures rough, or why there are none: each remark once, with its measures."""
    names: dict[str, list[str]] = {}
    for measure in measures:
        if measure.estimate.note:
            names.setdefault(measure.estimate.note, []).append(measure.name)
    return [f"{'; '.join(of)}: {remark}" for remark, of in names.items()]


def levels_text(estimates: Sequence[Estimate]) -> str:
    """Level of the intervals, such as ``99.2 % intervals``; empty without any."""
    levels = sorted({round(e.level, 4) for e in estimates if e.low is not None})
    return f"{' and '.join(map(numbers.level_text, levels))} intervals" if levels else ""


def cost_text(cost: Cost) -> str:
    """What something took; the share without verdict is always there."""
    usd = numbers.money(cost.usd, unknown="price not known")
    return ", ".join(
        [unscored_text(cost), many(cost.calls, "call"), many(cost.tokens, "token"), usd]
    )


def unscored_text(cost: Cost) -> str:
    """How many judgements there are, and the share of them without verdict."""
    rate = numbers.percent(cost.unscored / cost.judgements) if cost.judgements else ""
    unscored = f"{count(cost.unscored)} unscored{f' ({rate})' if rate else ''}"
    return f"{many(cost.judgements, 'judgement')}, {unscored}"


def asked_text(card: Card) -> str:
    """One sentence: what the judge was asked."""
    n = sum(card.protocols.values())
    return f"{card.size.capitalize()} audit on {many(n, 'plan')} made from {card.rows}."


def bases_text(card: Card) -> str:
    """Where the plans are from."""
    parts = [_tally(card.protocols), _tally(card.origins, "from a {}")]
    parts += [f"cases left out: {_tally(card.left_out)}"] if card.left_out else []
    return "; ".join(part for part in parts if part) or "none"


def _tally(counts: Mapping[str, int], shape: str = "{}") -> str:
    return ", ".join(f"{n:,} {shape.format(name)}" for name, n in counts.items())


def settings_text(settings: Mapping[str, Any]) -> str:
    """The settings that may move a verdict."""
    parts = [
        f"{name.replace('_', ' ')} {_setting(value)}"
        for name, value in settings.items()
        if name not in _HANDLING and value not in (None, {}, [], "")
    ]
    return ", ".join(parts) or "none that could move a verdict"


def _setting(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | float):
        return f"{value:g}" if abs(value) < 1e6 else str(value)
    if isinstance(value, str):
        return value
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def tally_text(outcomes: Sequence[Outcome | None]) -> str:
    """How the probes came out: ``3 pass, 2 fail, 5 could not be told``."""
    counts = Counter(outcomes)
    words = {"passes": "pass", "fails": "fail", "could not tell": "could not be told"}
    return ", ".join(f"{counts[outcome]} {words[outcome]}" for outcome in OUTCOMES)


def difference_unit(pair: MeasurePair) -> Unit:
    """How a difference reads: that of two shares is one of points."""
    return "points" if pair.unit == "share" else pair.unit


def difference_text(pair: MeasurePair) -> str:
    """The difference with its interval."""
    return value_text(pair.difference, difference_unit(pair))


def p_text(p: float | None) -> str:
    """A p-value to three places, never as zero."""
    return numbers.number(p, "p")


def conclusion(pair: MeasurePair, *, alpha: float) -> str:
    """What a difference amounts to, in words; ``alpha`` is one minus the confidence level."""
    difference = pair.difference
    if difference.value is None or difference.low is None or difference.high is None:
        return f"not tested: {difference.note or 'no interval'}"
    if pair.detectable is None:
        seen = "what would have been is not known"
    elif pair.detectable >= 2:
        seen = "one of any size would not have been"
    else:
        size = size_text(pair.detectable, difference_unit(pair))
        seen = f"one of {size} would have been"
    if difference.low <= 0 <= difference.high:
        return f"no difference seen; {seen}"
    if pair.adjusted is None or pair.adjusted >= alpha:
        return f"not clear among several measures; {seen}"
    if pair.side == "within":
        return "A is higher" if difference.value > 0 else "B is higher"
    return (
        "A does better" if (difference.value > 0) == (pair.side == "at least") else "B does better"
    )


def only_notes(comparison: CardComparison) -> Iterator[str]:
    """Sentences about measures that one of the judges lacks."""
    for name, only in (("A", comparison.only_first), ("B", comparison.only_second)):
        if only:
            yield f"Measures that only {name} has figures of: {'; '.join(only)}."


def probe_title(comparison: CardComparison, pair: MeasurePair) -> str:
    """Title of the probe that a measure belongs to."""
    return next(probe.title for probe in comparison.probes if probe.name == pair.probe)
