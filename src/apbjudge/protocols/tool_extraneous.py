"""Tool-extraneous: plans or steps with distractors among the tools.

A row without distractors is level 0, the base condition of the same case.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..records import Finding, Item
from ..rubrics import Rubric
from .base import Protocol
from .checks.names import distractors
from .holistic import PLAN_CHECKS
from .step_wise import STEP_CHECKS


def _base_checks(item: Item, rubric: Rubric) -> Iterator[Finding]:
    for check in PLAN_CHECKS if item.form == "plan" else STEP_CHECKS:
        yield from check(item, rubric)


TOOL_EXTRANEOUS = Protocol(
    name="tool-extraneous",
    shape="flags",
    rubrics={"plan": "apb-extraneous-holistic@1", "steps": "apb-extraneous-step-wise@1"},
    checks=(distractors, _base_checks),
)
