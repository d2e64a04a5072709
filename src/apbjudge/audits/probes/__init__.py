"""The probes of an audit, in the order of the card."""

from __future__ import annotations

from . import (
    consistency,
    drift,
    faults,
    injection,
    leaks,
    length,
    preference,
    presentation,
    reference,
    refusals,
    scale,
    subgroups,
)

OF_RESPONSES = (
    faults,
    refusals,
    consistency,
    drift,
    presentation,
    length,
    reference,
    injection,
    scale,
    subgroups,
)
"""Probes that need nothing but the responses."""

PROBES = tuple(module.SPEC.name for module in (*OF_RESPONSES, preference, leaks))
"""Names of all probes."""
