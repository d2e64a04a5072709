"""Words and numbers of a judge card that its document and its page share."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...document import numbers
from ...document.model import MetricCell, Plot
from ...document.numbers import DASH
from ...statistics.estimates import Estimate
from ..card import Card
from ..comparison import CardComparison, MeasurePair
from ..outcomes import UNITS, Cost, Measure, Outcome, Unit

OUTCOMES: tuple[Outcome, ...] = ("passes", "fails", "could not tell")
SYMBOLS: Mapping[Outcome, str] = {"passes": "✓", "fails": "✗", "could not tell": "?"}
_TOPS = (0.1, 0.2, 0.3, 0.5, 1.0, 2.0)
"""Possible ends of axes; no value of a card is beyond the last."""
_LONGEST = 60
VERDICT_RULE = (
    "A measure passes when its whole interval is within the limit and fails when its whole "
    "interval is beyond it; otherwise the audit could not tell. A probe fails with any of its "
    "measures and passes with all of them. "
    "The intervals of a probe with m measures have the level 1 - 0.05 / m: a probe fails a judge "
    "whose true figures are within all limits with a probability of at most 2.5 %, and passes a "
    "judge with a true figure beyond its limit with a probability of at most 2.5 %, as far as the "
    "intervals hold."
)
HOW_COMPARED = (
    "Differences are A minus B over the cases that both figures are about; each case has as much "
    "weight as was asked of it, and each difference has its own interval. p is two-sided, and "
    "adjusted by Holm's method for all measures together. "
    "A difference that is not seen may still exist: the last words give the difference that would "
    "have been detected with a probability of 80 %."
)

_HANDLING = frozenset(
    "model api_base api_base_file transport vision max_images max_image_bytes max_text_bytes "
    "frames require_files timeout_s deadline_s outage_s retries max_concurrency "
    "concurrency_per_endpoint rpm tpm price_input price_output price_cached lead".split()
)
"""Settings that can't change a verdict, or that the card shows elsewhere."""


def figure(estimate: Estimate, unit: Unit) -> MetricCell:
    """A figure of a card in a cell; another column has its denominators."""
    return MetricCell(estimate=estimate, unit=UNITS[unit], denominator=False)


def measure_cell(measure: Measure, among: Iterable[Measure]) -> MetricCell:
    """A measure's figure, drawn on the axis of its unit, with the allowed range."""
    same = [m for m in among if m.unit == measure.unit]
    top = _top([1.5 * m.limit for m in same], [m.estimate for m in same])
    low = 0.0 if measure.unit == "share" else -top
    if measure.unit == "share":
        top = 1.0 if any(m.side == "at least" for m in same) else min(1.0, top)
    limit = measure.limit
    allowed = {"at least": (limit, top), "at most": (low, limit), "within": (-limit, limit)}
    cell = figure(measure.estimate, measure.unit)
    return replace(cell, plot=Plot(axis=(low, top), allowed=allowed[measure.side]))


def difference_cell(pair: MeasurePair) -> MetricCell:
    """The difference of two judges, drawn around zero; a difference of shares is in points."""
    top = _top([], [pair.difference])
    cell = figure(pair.difference, "points" if pair.unit == "share" else pair.unit)
    return replace(cell, plot=Plot(axis=(-top, top), allowed=(0.0, 0.0)))


def _top(least: Iterable[float], estimates: Iterable[Estimate]) -> float:
    """The end of the shortest axis that contains all values."""
    ends = [abs(end or 0.0) for e in estimates for end in (e.value, e.low, e.high)]
    most = max([*least, *ends], default=0.0)
    return next((top for top in _TOPS if top >= most), _TOPS[-1])


def size_text(value: float | None, unit: Unit) -> str:
    """A size without sign, such as a detectable difference."""
    return DASH if value is None else numbers.size(value, UNITS[unit])


def many(n: int, what: str) -> str:
    """A count with its noun, in the plural unless it is 1."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def remarks(measures: Sequence[Measure]) -> list[str]:
    """Reasons why figures are rough or missing: each remark once, with its measures."""
    names: dict[str, list[str]] = {}
    for measure in measures:
        if measure.estimate.note:
            names.setdefault(measure.estimate.note, []).append(measure.name)
    return [f"{'; '.join(of)}: {remark}" for remark, of in names.items()]


def levels_text(estimates: Sequence[Estimate]) -> str:
    """Level of the intervals, such as ``99.2 % intervals``; empty without any."""
    levels = sorted({e.level for e in estimates if e.low is not None})
    return f"{' and '.join(map(numbers.level_text, levels))} intervals" if levels else ""


def cost_text(cost: Cost) -> str:
    """The cost of a part as text, always with the share of judgements without verdict."""
    usd = "unknown price" if cost.usd is None else f"{cost.usd:,.2f} USD"
    parts = [unscored_text(cost), many(cost.calls, "call"), many(cost.tokens, "token"), usd]
    return ", ".join(parts)


def unscored_text(cost: Cost) -> str:
    """The number of judgements, and the share of them without verdict."""
    share = f" ({100 * cost.unscored / cost.judgements:.1f} %)" if cost.judgements else ""
    return f"{many(cost.judgements, 'judgement')}, {cost.unscored:,} unscored{share}"


def size_of_audit(card: Card) -> str:
    """The size of the audit in one sentence."""
    n = sum(card.protocols.values())
    return f"{card.size.capitalize()} audit on {many(n, 'plan')} made from {card.rows}."


def bases_text(card: Card) -> str:
    """The protocols and origins of the plans."""
    parts = [_tally(card.protocols), _tally(card.origins, "from a {}")]
    parts += [f"cases left out: {_tally(card.left_out)}"] if card.left_out else []
    return "; ".join(filter(None, parts)) or "none"


def _tally(counts: Mapping[str, int], shape: str = "{}") -> str:
    return ", ".join(f"{n:,} {shape.format(name)}" for name, n in counts.items())


def settings_text(settings: Mapping[str, Any]) -> str:
    """The settings that may change a verdict."""
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
    """The outcomes of the probes: ``3 pass, 2 fail, 5 could not tell``."""
    counts = Counter(outcomes)
    words = {"passes": "pass", "fails": "fail", "could not tell": "could not tell"}
    return ", ".join(f"{counts[outcome]} {words[outcome]}" for outcome in OUTCOMES)


def with_symbol(outcome: Outcome | None) -> str:
    """An outcome after its symbol; "not asked" if the card lacks the probe."""
    return f"{DASH} not asked" if outcome is None else f"{SYMBOLS[outcome]} {outcome}"


def conclusion(pair: MeasurePair, *, alpha: float) -> str:
    """The conclusion from a difference, in words; ``alpha`` is one minus the confidence level."""
    difference = pair.difference
    if difference.value is None or difference.low is None or difference.high is None:
        return f"not tested: {difference.note or 'no interval'}"
    detectable = "detectable difference not known"
    if pair.detectable is not None:
        of = size_text(pair.detectable, pair.unit)
        detectable = "none is detectable" if pair.detectable >= 2 else f"detectable: {of}"
    if difference.low <= 0 <= difference.high:
        return f"no difference seen; {detectable}"
    if pair.adjusted is None or pair.adjusted >= alpha:
        return f"not clear among several; {detectable}"
    if pair.side == "within":
        return "A is higher" if difference.value > 0 else "B is higher"
    return (
        "A does better" if (difference.value > 0) == (pair.side == "at least") else "B does better"
    )


def only_notes(comparison: CardComparison) -> Iterator[str]:
    """Sentences about measures that one of the judges lacks."""
    for name, only in (("A", comparison.only_first), ("B", comparison.only_second)):
        if only:
            yield f"Measures that only {name} has: {'; '.join(only)}."
