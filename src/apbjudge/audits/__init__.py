"""Audits of a judge: what is wrong with it, found without believing it.

Rows become bases (plans taken as correct), bases become variants of which the truth is known, and
what a judge says of them becomes the figures of ten probes. Everything is a pure function of its
input and a seed; whoever asks the judge is elsewhere.
"""

from .card import Card
from .comparing import CardComparison, compare_cards
from .making.bases import Base, Bases, find_bases
from .making.harmless import HARMLESS, harmless
from .making.injections import inject, payloads
from .making.padding import pad
from .making.planting import KINDS, Kind, plant
from .making.references import beside
from .making.showing import SHOWN, show
from .reading import read_card
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
