"""The judge card: what an audit found, in one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from .outcomes import Cost, Probe

Size = Literal["quick", "full"]
Verdicts = Literal["own", "enforced"]
"""Which verdicts of the judge the figures are of: its own, or those after what code proves was
enforced, as in cards of earlier versions."""
CARD_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What an audit found.

    Attributes:
        judge: The judge's name.
        settings: Its settings, as in a run's manifest.
        rows: What its items were made from, in words.
        protocols: Number of bases by protocol.
        origins: Number of bases by origin: ``reference`` or ``label``.
        left_out: Cases without a base, by reason.
        size: Quick or full.
        seed: Seed of the draw.
        version: Version of apbjudge.
        fingerprint: Hash of the audit's plan: equal for judges that were asked the same.
        probes: The probes in their order.
        cost: What everything took, each judgement counted once.
        notes: What readers must know of the whole.
        verdicts: Which of the judge's verdicts the figures are of.
    """

    judge: str
    settings: Mapping[str, Any]
    rows: str
    protocols: Mapping[str, int]
    origins: Mapping[str, int]
    left_out: Mapping[str, int]
    size: Size
    seed: int
    version: str
    fingerprint: str
    probes: tuple[Probe, ...]
    cost: Cost
    notes: tuple[str, ...] = field(default=())
    verdicts: Verdicts = "enforced"

    def to_json(self) -> dict[str, Any]:
        """The card in JSON values."""
        return {"card": CARD_VERSION, **asdict(self)}
