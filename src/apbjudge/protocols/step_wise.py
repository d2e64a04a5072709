"""Step-wise: the next one to three steps, each valid and reasonable."""

from __future__ import annotations

from .base import Check, Protocol
from .checks.arguments import concrete_arguments
from .checks.dataflow import used_before_made
from .checks.form import call_due, output_format
from .checks.hints import low_overlap, repeated_calls, vague_values
from .checks.names import unknown_tools

STEP_CHECKS: tuple[Check, ...] = (
    output_format,
    call_due,
    unknown_tools,
    concrete_arguments,
    used_before_made,
    low_overlap,
    repeated_calls,
    vague_values,
)
"""What can be proven or suspected of any proposed steps."""

STEP_WISE = Protocol(
    name="step-wise",
    shape="flags",
    rubrics={"steps": "apb-step-wise@1"},
    checks=STEP_CHECKS,
)
