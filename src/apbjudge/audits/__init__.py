"""Audits of a judge: what is wrong with it, found without believing it.

Rows become bases (plans taken as correct), bases become variants of which the truth is known, and
what a judge says of them becomes the figures of ten probes. Everything is a pure function of its
input and a seed; whoever asks the judge is elsewhere.
"""

from .bases import Base, Bases, find_bases
from .card import Card
from .comparing import CardComparison, compare_cards
from .harmless import HARMLESS, harmless
from .injections import inject, payloads
from .padding import pad
from .planting import KINDS, Kind, plant
from .reading import read_card
from .references import beside
from .showing import SHOWN, show
from .variants import Truth, Variant
from .verdicts import Measure, Probe

__all__ = [
    "HARMLESS",
    "KINDS",
    "SHOWN",
    "Base",
    "Bases",
    "Card",
    "CardComparison",
    "Kind",
    "Measure",
    "Probe",
    "Truth",
    "Variant",
    "beside",
    "compare_cards",
    "find_bases",
    "harmless",
    "inject",
    "pad",
    "payloads",
    "plant",
    "read_card",
    "show",
]
