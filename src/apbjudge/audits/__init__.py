"""Audits of a judge: what is wrong with it, found without believing it.

Rows become bases (plans taken as correct), bases become variants of which the truth is known, and
what a judge says of them becomes the figures of ten probes. Everything is a pure function of its
input and a seed; whoever asks the judge is elsewhere.
"""

from .card import Card
from .comparison import CardComparison, compare_cards
from .perturbations.bases import Base, Bases, find_bases
from .perturbations.harmless import HARMLESS, harmless
from .perturbations.injections import inject, payloads
from .perturbations.padding import pad
from .perturbations.faults import KINDS, Kind, plant
from .perturbations.references import beside
from .perturbations.format_changes import SHOWN, show
from .reading import read_card
from .variants import Truth, Variant
from .outcomes import Measure, Probe

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
