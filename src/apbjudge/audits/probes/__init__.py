"""The probes of an audit, in the order of the card."""

from __future__ import annotations

from .base import AuditProbe
from .consistency import Consistency
from .drift import Drift
from .faults import Faults
from .injection import Injection
from .leaks import Leaks
from .length import Length
from .preference import Preference
from .presentation import Presentation
from .reference import ReferenceUse
from .refusals import Refusals
from .scale import Scale
from .subgroups import Subgroups

OF_RESPONSES: tuple[type[AuditProbe], ...] = (
    Faults,
    Refusals,
    Consistency,
    Drift,
    Presentation,
    Length,
    ReferenceUse,
    Injection,
    Scale,
    Subgroups,
    Preference,
)
"""Probes of a judge's replies; the last needs labels."""

PROBES = tuple(probe.name for probe in (*OF_RESPONSES, Leaks))
"""Names of all probes."""
