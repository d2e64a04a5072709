"""A judge card as one HTML page: nothing is loaded, nothing runs, everything from data is text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..audits.card import Card
from ..audits.comparing import CardComparison
from . import card_figures, card_plot
from .templating import environment

if TYPE_CHECKING:
    from jinja2 import Environment

_SHARED: Mapping[str, Callable[..., Any]] = {
    "asked_text": card_figures.asked_text,
    "bases_text": card_figures.bases_text,
    "conclusion": card_figures.conclusion,
    "cost_text": card_figures.cost_text,
    "counts_text": card_figures.counts_text,
    "difference_plots": card_plot.difference_plots,
    "difference_text": card_figures.difference_text,
    "figure_text": card_figures.figure_text,
    "levels_text": card_figures.levels_text,
    "limit_text": card_figures.limit_text,
    "many": card_figures.many,
    "measure_plots": card_plot.measure_plots,
    "only_notes": card_figures.only_notes,
    "p_text": card_figures.p_text,
    "probe_title": card_figures.probe_title,
    "remarks": card_figures.remarks,
    "settings_text": card_figures.settings_text,
    "size_text": card_figures.size_text,
    "standing_word": card_figures.standing_word,
    "tally_text": card_figures.tally_text,
    "unscored_text": card_figures.unscored_text,
    "value_text": card_figures.value_text,
    "symbol_of": card_figures.SYMBOLS.__getitem__,
}
"""What the templates call."""


def card_html(card: Card) -> str:
    """The whole card as one page, for a screen of any width and for A4.

    Args:
        card: The card; all of its texts are escaped.
    """
    return _render("card.html.j2", card=card, how=card_figures.HOW_VERDICTS_ARE_MADE)


def cards_html(found: CardComparison) -> str:
    """Two judges side by side as one page.

    Args:
        found: The comparison; all of its texts are escaped.
    """
    return _render("cards.html.j2", found=found, how=card_figures.HOW_COMPARED)


def _render(name: str, **values: object) -> str:
    return _environment().get_template(name).render(values)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return environment(calls=_SHARED, filters={"minus": _minus})


def _minus(text: str) -> str:
    """Numbers with the true minus sign, as wide as the plus."""
    return text.replace("-", "−")
