"""Hints, which are shown with a verdict and never decide it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from ...records import Finding, Item, message_calls
from ...rubrics import Rubric
from .rules import finding
from .values import is_stopgap, strings

LOW_OVERLAP = 0.2
"""Share of the reference's tools below which a chain counts as very different."""


def low_overlap(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """E2, suspected: less than a fifth of the reference's tools occur in the prediction."""
    if item.reference is None or item.prediction.kind not in ("plan", "steps"):
        return
    wanted = item.reference.names
    used = {call.name for call in item.prediction.calls}
    if wanted and used and len(wanted & used) < LOW_OVERLAP * len(wanted):
        message = f"{len(wanted & used)} of the reference's {len(wanted)} tools are used"
        yield finding("low-overlap", "E2", "suspected", "response", message)


def repeated_calls(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """E4, suspected: the same tool with the same arguments as before, here or in the trajectory."""
    names = {call.name for call in item.prediction.calls if call.name}
    seen = {
        _call_key(call.name, call.arguments)
        for message in item.trajectory
        for call in message_calls(message)
        if call.name in names
    }
    for call in item.prediction.calls:
        key = _call_key(call.name, call.arguments)
        if call.name and key in seen:
            message = "identical to an earlier call"
            yield finding("repeated-call", "E4", "suspected", call.where, message)
        seen.add(key)


def _call_key(name: str, arguments: dict[str, Any] | None) -> bytes:
    return orjson.dumps([name, arguments], option=orjson.OPT_SORT_KEYS)


def vague_values(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """E5, suspected: an argument that is empty or a stopgap such as ``TBD``."""
    for call in item.prediction.calls:
        for leaf in strings(call.arguments, f"{call.where}.arguments"):
            if is_stopgap(leaf.text):
                message = "an empty value" if not leaf.text.strip() else "a stopgap for a value"
                yield finding("vague-value", "E5", "suspected", leaf.path, message)
