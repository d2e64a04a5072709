"""What a calibration says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .confusion import Confusion
from .intervals import Estimate

Policy = Literal["exclude", "wrong", "bounds"]
POLICIES: tuple[Policy, ...] = ("exclude", "wrong", "bounds")
"""What unscored items count as; see ``measures.calibrate``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How far a judge agrees with humans on the same items.

    Attributes:
        n_items: Items with a human label of any kind.
        policy: How unscored items were counted.
        scored: Share of these items that have a verdict.
        measures: Estimates by name.
        codes: The same per error code, for codes on which both said something.
        tables: Confusion matrices: ``is_correct``, ``grade`` and each error code.
    """

    n_items: int
    policy: Policy
    scored: Estimate
    measures: dict[str, Estimate] = field(default_factory=dict[str, Estimate])
    codes: dict[str, dict[str, Estimate]] = field(default_factory=dict[str, dict[str, Estimate]])
    tables: dict[str, Confusion] = field(default_factory=dict[str, Confusion])
