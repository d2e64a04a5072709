"""Audits of a judge: what is wrong with it, measured without believing it.

Rows become bases (plans taken as correct), bases become variants of which the truth is known, and
a judge's responses to them become the measures of twelve probes.
"""

from .card import Card, read_card
from .comparison import CardComparison, compare_cards
from .config import AuditConfig, Prepared, prepare
from .outcomes import Measure, Probe
from .perturbations.bases import Base, Bases, find_bases
from .perturbations.faults import KINDS, Kind, plant
from .perturbations.format_changes import FORMAT_CHANGES, change_format
from .perturbations.harmless import HARMLESS, harmless
from .perturbations.injections import inject, payloads
from .perturbations.padding import pad
from .perturbations.references import other_references
from .session import Audit, audit, forecast_audit
from .variants import Truth, Variant

__all__ = [
    "FORMAT_CHANGES",
    "HARMLESS",
    "KINDS",
    "Audit",
    "AuditConfig",
    "Base",
    "Bases",
    "Card",
    "CardComparison",
    "Kind",
    "Measure",
    "Prepared",
    "Probe",
    "Truth",
    "Variant",
    "audit",
    "change_format",
    "compare_cards",
    "find_bases",
    "forecast_audit",
    "harmless",
    "inject",
    "other_references",
    "pad",
    "payloads",
    "plant",
    "prepare",
    "read_card",
]
