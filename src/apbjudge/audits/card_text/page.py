"""Judge cards as HTML pages: nothing is loaded, nothing runs, everything from data is text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ...document import numbers
from ...document.templating import environment
from ...statistics.estimates import Estimate
from ..card import Card
from ..comparison import CardComparison
from ..outcomes import Measure, Side, Unit
from . import words

if TYPE_CHECKING:
    from jinja2 import Environment


@lru_cache(maxsize=1)
def _environment() -> Environment:
    calls = {name: getattr(words, name) for name in _WORDS}
    calls |= {"measure_plots": measure_plots, "difference_plots": difference_plots}
    return environment(
        Path(__file__).parent / "templates",
        calls=calls | {"symbol_of": words.SYMBOLS.__getitem__},
    )


_WORDS = (
    "bases_text conclusion cost_text counts_text difference_text levels_text limit_text many "
    "only_notes outcome_word p_text probe_title remarks settings_text size_of_audit size_text "
    "tally_text unscored_text value_text"
).split()
"""Functions that the templates call."""


def card_html(card: Card) -> str:
    """The whole card as one page, for a screen of any width and for A4.

    Args:
        card: The card; all of its texts are escaped.
    """
    return _render("card.html.j2", card=card, how=words.HOW_VERDICTS_ARE_MADE)


def cards_html(comparison: CardComparison) -> str:
    """Two judges side by side as one page.

    Args:
        comparison: The comparison; all of its texts are escaped.
    """
    return _render("cards.html.j2", comparison=comparison, how=words.HOW_COMPARED)


def _render(name: str, **values: object) -> str:
    return _environment().get_template(name).render(values)


# Interval plots ---------------------------------------------------------------------------------

_TOPS = (0.1, 0.2, 0.3, 0.5, 1.0, 2.0)
_NEAR = 16.0  # labels closer than this would touch


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A label under the axis.

    Attributes:
        at: Where, 0 to 100.
        label: What it says.
        anchor: ``start`` and ``end`` at the ends of the axis, else ``middle``.
    """

    at: float
    label: str
    anchor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """One figure with its interval; everything in percent of the width.

    Attributes:
        low: Lower end of the interval, None without one.
        point: The figure, None without one.
        high: Upper end.
        allowed: From where to where a judge in order is; None in a plot without limit.
        limits: Where limits stand.
        ticks: Labels.
    """

    low: float | None
    point: float | None
    high: float | None
    allowed: tuple[float, float] | None
    limits: tuple[float, ...]
    ticks: tuple[Tick, ...]


def measure_plots(measures: Sequence[Measure]) -> tuple[Plot, ...]:
    """A plot for each measure of a probe; those of one unit share their axis.

    Args:
        measures: The measures.
    """
    units: list[Unit] = [measure.unit for measure in measures]
    axes = {
        unit: _axis(unit, [m for m, own in zip(measures, units, strict=True) if own == unit])
        for unit in units
    }
    return tuple(_of_measure(m, own, axes[own]) for m, own in zip(measures, units, strict=True))


Axis = tuple[float, float]


def _axis(unit: Unit, measures: Sequence[Measure]) -> Axis:
    if unit == "share" and any(m.side == "at least" for m in measures):
        return 0.0, 1.0
    top = _top([1.5 * abs(m.limit) for m in measures], [m.estimate for m in measures])
    return (0.0, min(1.0, top)) if unit == "share" else (-top, top)


def _top(least: Iterable[float], estimates: Iterable[Estimate]) -> float:
    """The shortest axis on which everything has its place."""
    ends = [abs(end or 0.0) for e in estimates for end in (e.value, e.low, e.high)]
    most = max([*least, *ends], default=0.0)
    return next((top for top in _TOPS if top >= most), _TOPS[-1])


def _of_measure(measure: Measure, unit: Unit, axis: Axis) -> Plot:
    limits = [-measure.limit, measure.limit] if measure.side == "within" else [measure.limit]
    places = tuple(_at(limit, axis) for limit in limits)
    return Plot(
        low=_end(measure.estimate.low, axis),
        point=_end(measure.estimate.value, axis),
        high=_end(measure.estimate.high, axis),
        allowed=_allowed(measure.side, places),
        limits=places,
        ticks=_ticks(limits, unit, axis),
    )


def _allowed(side: Side, places: Sequence[float]) -> tuple[float, float]:
    if side == "at least":
        return places[0], 100.0
    return (0.0, places[0]) if side == "at most" else (places[0], places[-1])


def _ticks(limits: Sequence[float], unit: Unit, axis: Axis) -> tuple[Tick, ...]:
    """Limits first; the ends of the axis and its zero where they leave room."""
    ticks: list[Tick] = []
    for value in (*limits, *axis, 0.0):
        at = _at(value, axis)
        if all(abs(at - tick.at) >= _NEAR for tick in ticks):
            anchor = "start" if at < _NEAR / 2 else "end" if at > 100 - _NEAR / 2 else "middle"
            ticks.append(Tick(at=at, label=_label(value, unit), anchor=anchor))
    return tuple(ticks)


def _label(value: float, unit: Unit) -> str:
    text = numbers.number(value, words.UNITS[unit]).removesuffix(".0")
    return f"{text} %" if unit == "share" else text


def _end(value: float | None, axis: Axis) -> float | None:
    return None if value is None else _at(value, axis)


def _at(value: float, axis: Axis) -> float:
    low, high = axis
    share = (value - low) / (high - low)
    return round(100 * min(1.0, max(0.0, share)), 2)


def difference_plots(comparison: CardComparison) -> tuple[Plot, ...]:
    """A plot for each difference of two judges, all on one axis around zero."""
    top = _top([], [pair.difference for pair in comparison.measures])
    axis = (-top, top)
    return tuple(
        Plot(
            low=_end(pair.difference.low, axis),
            point=_end(pair.difference.value, axis),
            high=_end(pair.difference.high, axis),
            allowed=None,
            limits=(50.0,),
            ticks=_ticks([0.0], words.difference_unit(pair), axis),
        )
        for pair in comparison.measures
    )
