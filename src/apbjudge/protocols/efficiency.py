"""Efficiency: a whole plan where every tool has a cost; the cost itself is added up by code."""

from __future__ import annotations

from ..errors import RowError
from ..records import Item
from .base import Protocol
from .holistic import PLAN_CHECKS


def _has_costs(item: Item) -> None:
    if item.tools is None or not item.tools.has_costs:
        raise RowError("tools", "a cost for every tool", "at least one tool without a cost")


EFFICIENCY = Protocol(
    name="efficiency",
    shape="flags",
    rubrics={"plan": "apb-efficiency@1"},
    checks=PLAN_CHECKS,
    admit=_has_costs,
)
