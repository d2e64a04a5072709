"""Holistic: a whole plan, graded for whether it solves the query."""

from __future__ import annotations

from .base import Check, Protocol
from .checks.arguments import parameter_names
from .checks.dataflow import used_before_made
from .checks.form import emptiness, output_format
from .checks.hints import low_overlap, repeated_calls
from .checks.names import unknown_tools

PLAN_CHECKS: tuple[Check, ...] = (
    output_format,
    emptiness,
    unknown_tools,
    parameter_names,
    used_before_made,
    low_overlap,
    repeated_calls,
)
"""What can be proven or suspected of any whole plan."""

HOLISTIC = Protocol(
    name="holistic",
    shape="flags",
    rubrics={"plan": "apb-holistic@1"},
    checks=PLAN_CHECKS,
)
