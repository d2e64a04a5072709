"""Protocols: from case to prompt to verdict, and the facts that code can prove."""

from .base import Check, Protocol
from .checks.form import over_refusal
from .checks.names import plan_cost, uses_distractor
from .checks.reference import matches_reference
from .table import AUTO, PROTOCOLS, get_protocol, protocol_of

__all__ = [
    "AUTO",
    "PROTOCOLS",
    "Check",
    "Protocol",
    "get_protocol",
    "matches_reference",
    "over_refusal",
    "plan_cost",
    "protocol_of",
    "uses_distractor",
]
