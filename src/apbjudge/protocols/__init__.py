"""Protocols: from case to prompt to verdict, and the facts that rules can prove."""

from .base import Check, Protocol
from .checks.cost import excess_cost, optimal_cost, plan_cost
from .checks.form import over_refusal
from .checks.names import uses_distractor
from .checks.reference import matches_reference
from .table import AUTO, CASE, PROTOCOLS, get_protocol, protocol_of

__all__ = [
    "AUTO",
    "CASE",
    "PROTOCOLS",
    "Check",
    "Protocol",
    "excess_cost",
    "get_protocol",
    "matches_reference",
    "optimal_cost",
    "over_refusal",
    "plan_cost",
    "protocol_of",
    "uses_distractor",
]
