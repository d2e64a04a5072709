"""Tests of an agent whose plans are judged; the conditions have intervals.

python -m pytest examples/pytest_suite -n 2
"""

from __future__ import annotations

from typing import Any

import pytest

CASES: dict[str, dict[str, Any]] = {
    "refund": {"query": "Refund order 7.", "tools": ["find_order", "refund"]},
    "train": {"query": "Book the cheapest train to Oslo.", "tools": ["trains", "book"]},
    "meeting": {"query": "Move my meeting with Ada to Monday.", "tools": ["find", "move"]},
    "classes": {"query": "Cancel my gym classes.", "tools": ["classes", "cancel"]},
}
PLANS: dict[str, list[dict[str, Any]]] = {
    "refund": [{"tool": "find_order", "args": {"id": 7}}, {"tool": "refund", "args": {"id": 7}}],
    "train": [{"tool": "trains", "args": {"to": "Oslo"}}, {"tool": "book", "args": {"train": 1}}],
    "meeting": [{"tool": "find", "args": {"with": "Ada"}}, {"tool": "reschedule", "args": {}}],
    "classes": [{"tool": "classes", "args": {}}, {"tool": "cancel", "args": {"ids": "all"}}],
}


def answered(name: str) -> dict[str, Any]:
    """A case with the plan of your agent, which you call in place of ``PLANS``."""
    return {"id": name, **CASES[name], "tested_model": "my-agent", "model_response": PLANS[name]}


@pytest.mark.apbjudge("no provable fault >= 0.7")
@pytest.mark.parametrize("name", CASES)
def test_most_plans_are_sound(judged: Any, name: str) -> None:
    """The marker's condition is on the rows of all four parameters."""
    judged(answered(name))


def test_the_refund_is_sound(judged: Any) -> None:
    """A condition on the rows of one call, as an assertion; the row counts once in the run."""
    judged(answered("refund")).check("no provable fault >= 1")
