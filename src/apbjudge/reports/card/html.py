"""A judge card as one HTML page: nothing is loaded, nothing runs, everything from data is text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ...audits.card import Card
from ...audits.comparison import CardComparison
from ..templating import environment
from . import figures, plot

if TYPE_CHECKING:
    from jinja2 import Environment

_SHARED: Mapping[str, Callable[..., Any]] = {
    "asked_text": figures.asked_text,
    "bases_text": figures.bases_text,
    "conclusion": figures.conclusion,
    "cost_text": figures.cost_text,
    "counts_text": figures.counts_text,
    "difference_plots": plot.difference_plots,
    "difference_text": figures.difference_text,
    "figure_text": figures.figure_text,
    "levels_text": figures.levels_text,
    "limit_text": figures.limit_text,
    "many": figures.many,
    "measure_plots": plot.measure_plots,
    "only_notes": figures.only_notes,
    "p_text": figures.p_text,
    "probe_title": figures.probe_title,
    "remarks": figures.remarks,
    "settings_text": figures.settings_text,
    "size_text": figures.size_text,
    "outcome_word": figures.outcome_word,
    "tally_text": figures.tally_text,
    "unscored_text": figures.unscored_text,
    "value_text": figures.value_text,
    "symbol_of": figures.SYMBOLS.__getitem__,
}
"""What the templates call."""


def card_html(card: Card) -> str:
    """The whole card as one page, for a screen of any width and for A4.

    Args:
        card: The card; all of its texts are escaped.
    """
    return _render("card.html.j2", card=card, how=figures.HOW_VERDICTS_ARE_MADE)


def cards_html(comparison: CardComparison) -> str:
    """Two judges side by side as one page.

    Args:
        comparison: The comparison; all of its texts are escaped.
    """
    return _render("cards.html.j2", comparison=comparison, how=figures.HOW_COMPARED)


def _render(name: str, **values: object) -> str:
    return _environment().get_template(name).render(values)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return environment(calls=_SHARED, filters={"minus": _minus})


def _minus(text: str) -> str:
    """Numbers with the true minus sign, as wide as the plus."""
    return text.replace("-", "−")
