"""Transforms, which make cases of a seed: a module for each kind, and the table by split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..cases import EFFICIENCY, Transform
from .broken import tool_broken
from .distractors import extraneous_plans, extraneous_steps
from .efficiency import efficiency
from .plans import holistic
from .steps import step_wise
from .unsolvable import (
    compliance_lock,
    contradictory_constraints,
    dynamic_state,
    information_missing,
    missing_dimension,
    private_reference,
    tool_removal,
    visual_missing,
)

TRANSFORMS: Mapping[str, Sequence[Transform]] = {
    "holistic_planning": (holistic,),
    "step_wise_planning": (step_wise,),
    "holistic_tool_extraneous": (extraneous_plans,),
    "step_wise_tool_extraneous": (extraneous_steps,),
    "step_wise_tool_broken": (tool_broken,),
    "holistic_unsolvable": (
        contradictory_constraints,
        missing_dimension,
        compliance_lock,
        dynamic_state,
        information_missing,
        private_reference,
        tool_removal,
        visual_missing,
    ),
    EFFICIENCY: (efficiency,),
}
"""Transforms by split; each has the name that its rows state."""
