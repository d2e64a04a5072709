"""Types of what is written as plain dicts, of which the schemas are made."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict


class QueuedItem(TypedDict):
    """An item that a cascade leaves to humans, most uncertain first.

    Attributes:
        item_id: The item.
        tested_model: Whose response it is.
        line: 1-based line of its row.
        reason: ``no verdict`` of the last judge asked, ``not asked`` since the budget ended, or
            ``in doubt``: the strong judge is uncertain too.
        entropy: Uncertainty of the last judge that was asked; null without a verdict.
    """

    item_id: str
    tested_model: str
    line: int
    reason: Literal["no verdict", "not asked", "in doubt"]
    entropy: float | None


class ScheduledTurn(TypedDict):
    """A judgement of an audit, in the order of asking.

    Attributes:
        turn: From 0.
        run: Run of the audit, a folder in ``runs/``.
        name: Variant that is judged, as in ``variants.jsonl``.
    """

    turn: int
    run: str
    name: str
