"""Hints: shown beside a verdict, never deciding it."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from ...records import Finding, Item
from ...rubrics import Rubric
from .rules import finding
from .values import is_stopgap, strings

LOW_OVERLAP = 0.2
"""Share of the reference's tools below which a chain is remarkably different."""


def low_overlap(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """E2, suspected: less than a fifth of the reference's tools occur in the prediction."""
    if item.reference is None or item.prediction.kind not in ("plan", "steps"):
        return
    wanted = {call.name for call in item.reference.calls}
    used = {call.name for call in item.prediction.calls}
    if wanted and used and len(wanted & used) < LOW_OVERLAP * len(wanted):
        message = f"{len(wanted & used)} of the reference's {len(wanted)} tools are used"
        yield finding("low-overlap", "E2", "suspected", "response", message)


def repeated_calls(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """E4, suspected: the same tool with the same arguments twice."""
    seen: set[bytes] = set()
    for call in item.prediction.calls:
        if not call.name:
            continue
        try:
            key = orjson.dumps([call.name, call.arguments], option=orjson.OPT_SORT_KEYS)
        except orjson.JSONEncodeError:
            continue
        if key in seen:
            message = "identical to an earlier call"
            yield finding("repeated-call", "E4", "suspected", call.where, message)
        seen.add(key)


def vague_values(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """E5, suspected: an argument that is empty or a stopgap such as ``TBD``."""
    for call in item.prediction.calls:
        for leaf in strings(call.arguments, f"{call.where}.arguments"):
            if is_stopgap(leaf.text):
                message = "an empty value" if not leaf.text.strip() else "a stopgap for a value"
                yield finding("vague-value", "E5", "suspected", leaf.path, message)
