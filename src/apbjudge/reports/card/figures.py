"""The words and numbers of a judge card, as text, Markdown and HTML share them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...audits.card import Card
from ...audits.comparing import CardComparison, MeasurePair
from ...audits.verdicts import Cost, Figure, Measure, Side, Standing, Unit
from ...statistics.estimates import Estimate

STANDINGS: tuple[Standing, ...] = ("passes", "fails", "could not tell")
SYMBOLS: Mapping[Standing, str] = {"passes": "✓", "fails": "✗", "could not tell": "?"}
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
"""Settings that move no verdict, or are said elsewhere."""


def number(value: float, unit: Unit, *, signed: bool = False) -> str:
    """A number without its unit.

    Args:
        value: The figure.
        unit: Shares (in percent) and points have one place, plain numbers three.
        signed: Whether a plus stands before positive ones; points always have their sign.
    """
    sign = "+" if signed or unit == "points" else ""
    return f"{value:{sign}z.3f}" if unit == "plain" else f"{100 * value:{sign}z.1f}"


def with_unit(text: str, unit: Unit) -> str:
    """A number with its unit behind it."""
    return text + {"share": " %", "points": " pts", "plain": ""}[unit]


def value_text(estimate: Estimate, unit: Unit, *, short: bool = False) -> str:
    """A figure with its interval, ``93.3 % [80.1, 98.0]``.

    Args:
        estimate: The figure.
        unit: How it is shown.
        short: Leaves the unit out.
    """
    if estimate.value is None:
        return "–"
    value = number(estimate.value, unit)
    return f"{value if short else with_unit(value, unit)} {interval_text(estimate, unit)}"


def interval_text(estimate: Estimate, unit: Unit) -> str:
    """The interval alone, or that there is none."""
    if estimate.low is None or estimate.high is None:
        return "[no interval]"
    return f"[{number(estimate.low, unit)}, {number(estimate.high, unit)}]"


def limit_text(side: Side, limit: float, unit: Unit) -> str:
    """What is allowed: ``at least 70.0 %``, ``within 10.0 pts``."""
    text = number(limit, unit)
    return f"{side} {with_unit(text.lstrip('+') if side == 'within' else text, unit)}"


def size_text(value: float | None, unit: Unit) -> str:
    """A size without direction, such as that of a difference which would have been seen."""
    if value is None:
        return "–"
    least = 0.001  # the last digit that is shown
    text = number(max(value, least), unit).lstrip("+")
    text = with_unit(text, "points" if unit == "share" else unit)
    return f"under {text}" if value < least else text


def counts_text(estimate: Estimate) -> str:
    """The denominators."""
    return f"{many(estimate.n_items, 'item')} in {many(estimate.n_clusters, 'case')}"


def many(n: int, what: str) -> str:
    """A count with its noun in the plural where it is one."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def verdict_text(measure: Measure) -> str:
    """The verdict, with what it would have needed where it could not be told."""
    if measure.needed is None:
        return measure.standing
    return f"{measure.standing} (would need {measure.needed:,} cases)"


def remarks(measures: Sequence[Measure]) -> list[str]:
    """What makes figures rough, or why there are none: each remark once, with its measures."""
    names: dict[str, list[str]] = {}
    for measure in measures:
        if measure.estimate.note:
            names.setdefault(measure.estimate.note, []).append(measure.name)
    return [f"{'; '.join(of)}: {remark}" for remark, of in names.items()]


def figure_text(figure: Figure) -> str:
    """A figure that decides nothing, with its interval."""
    return value_text(figure.estimate, figure.unit)


def levels_text(estimates: Sequence[Estimate]) -> str:
    """Level of the intervals, such as ``99.2 % intervals``; empty without any."""
    levels = sorted({round(100 * e.level, 2) for e in estimates if e.low is not None})
    return f"{' and '.join(f'{level:g} %' for level in levels)} intervals" if levels else ""


def cost_text(cost: Cost) -> str:
    """What something took; the share without verdict is always there."""
    usd = "price not known" if cost.usd is None else f"{cost.usd:,.2f} USD"
    parts = [unscored_text(cost), many(cost.calls, "call"), many(cost.tokens, "token"), usd]
    return ", ".join(parts)


def unscored_text(cost: Cost) -> str:
    """How many judgements there are, and the share of them without verdict."""
    share = f" ({100 * cost.unscored / cost.judgements:.1f} %)" if cost.judgements else ""
    return f"{many(cost.judgements, 'judgement')}, {cost.unscored:,} unscored{share}"


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


def tally_text(standings: Sequence[Standing | None]) -> str:
    """How the probes came out: ``3 pass, 2 fail, 5 could not be told``."""
    counts = Counter(standings)
    words = {"passes": "pass", "fails": "fail", "could not tell": "could not be told"}
    return ", ".join(f"{counts[standing]} {words[standing]}" for standing in STANDINGS)


def difference_unit(pair: MeasurePair) -> Unit:
    """How a difference reads: that of two shares is one of points."""
    return "points" if pair.unit == "share" else pair.unit


def difference_text(pair: MeasurePair) -> str:
    """The difference with its interval."""
    return value_text(pair.difference, difference_unit(pair))


def p_text(p: float | None) -> str:
    """A p-value to three places, never as zero."""
    if p is None:
        return "–"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def conclusion(pair: MeasurePair, *, alpha: float) -> str:
    """What a difference amounts to, in words.

    Args:
        pair: The measure, with its adjusted p-value.
        alpha: One minus the confidence level.
    """
    found = pair.difference
    if found.value is None or found.low is None or found.high is None:
        return f"not tested: {found.note or 'no interval'}"
    seen = _seen(pair.detectable, difference_unit(pair))
    if found.low <= 0 <= found.high:
        return f"no difference seen; {seen}"
    if pair.adjusted is None or pair.adjusted >= alpha:
        return f"not clear among several measures; {seen}"
    if pair.side == "within":
        return "A is higher" if found.value > 0 else "B is higher"
    return "A does better" if (found.value > 0) == (pair.side == "at least") else "B does better"


def _seen(detectable: float | None, unit: Unit) -> str:
    if detectable is None:
        return "what would have been is not known"
    if detectable >= 2:
        return "one of any size would not have been"
    return f"one of {size_text(detectable, unit)} would have been"


def only_notes(found: CardComparison) -> Iterator[str]:
    """Sentences about measures that one of the judges lacks."""
    for name, only in (("A", found.only_first), ("B", found.only_second)):
        if only:
            yield f"Measures that only {name} has figures of: {'; '.join(only)}."


def standing_word(standing: Standing | None) -> str:
    """A verdict in a word, also where a card lacks the probe."""
    return "not asked" if standing is None else standing


def probe_title(found: CardComparison, pair: MeasurePair) -> str:
    """Title of the probe that a measure belongs to."""
    return next(probe.title for probe in found.probes if probe.name == pair.probe)
