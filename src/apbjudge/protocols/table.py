"""The protocols with their checks, and the choice of the one that grades a row of data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from ..errors import OptionError, RowError, load_plugin
from ..records import SPLITS, Finding, Item
from ..rubrics import Rubric
from .base import Check, Protocol
from .checks.arguments import concrete_arguments, parameter_names
from .checks.dataflow import used_before_made
from .checks.form import (
    call_due,
    calls_offline,
    carried_on,
    emptiness,
    output_format,
    says_nothing,
    unreadable,
)
from .checks.hints import low_overlap, repeated_calls, vague_values
from .checks.names import category, distractors, retries, unknown_tools
from .images import kind_of

PLAN_CHECKS: tuple[Check, ...] = (
    output_format,
    emptiness,
    unknown_tools,
    parameter_names,
    used_before_made,
    low_overlap,
    repeated_calls,
)
"""Checks that can prove or suspect something in any whole plan."""

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
"""Checks that can prove or suspect something in any proposed steps."""


def _base_checks(item: Item, rubric: Rubric) -> Iterator[Finding]:
    for check in PLAN_CHECKS if item.form == "plan" else STEP_CHECKS:
        yield from check(item, rubric)


def _has_broken_tool(item: Item) -> None:
    if item.condition.broken_tool is None:
        raise RowError("broken_tool_name", "the name of the tool that failed", None)


def _is_unsolvable(item: Item) -> None:
    if item.condition.unsolvable_type is None:
        raise RowError("unsolvable_type", "why the case can't be solved", None)
    seen = (file.path for file in item.files if kind_of(file) in ("picture", "video"))
    if item.condition.unsolvable_type == "visual_missing" and (path := next(seen, None)):
        raise RowError("files", "no picture or video with unsolvable_type visual_missing", path)


def _has_costs(item: Item) -> None:
    if item.tools is None or not item.tools.has_costs:
        raise RowError("tools", "a cost for every tool", "at least one tool without a cost")


# A whole plan, graded by whether it solves the query.
HOLISTIC = Protocol(
    name="holistic", shape="flags", rubrics={"plan": "apb-holistic@1"}, checks=PLAN_CHECKS
)
# The next one to three steps, each valid and reasonable.
STEP_WISE = Protocol(
    name="step-wise", shape="flags", rubrics={"steps": "apb-step-wise@1"}, checks=STEP_CHECKS
)
# Distractors among the tools; a row without any is level 0, the base condition of the same case.
TOOL_EXTRANEOUS = Protocol(
    name="tool-extraneous",
    shape="flags",
    rubrics={"plan": "apb-extraneous-holistic@1", "steps": "apb-extraneous-step-wise@1"},
    checks=(distractors, _base_checks),
    instead={"apb-step-wise-strict@1": "apb-extraneous-step-strict@1"},
)
# The behaviour, of five, after a tool's failure. Categories 1 (replacement), 3 (retry) and 5 for
# an unknown tool follow from exact names, and so does 4 for the explicit REJECT form; 2 against 5
# for an existing tool is left to a judge.
TOOL_BROKEN = Protocol(
    name="tool-broken",
    shape="category",
    rubrics={"steps": "apb-tool-broken@1"},
    checks=(unreadable, call_due, retries, unknown_tools),
    admit=_has_broken_tool,
    categorise=category,
)
# Graded by whether the tested model declines for the right reason, with rules for each type.
UNSOLVABLE = Protocol(
    name="unsolvable",
    shape="pass",
    rubrics={"plan": "apb-unsolvable@1"},
    checks=(carried_on, calls_offline, says_nothing),
    admit=_is_unsolvable,
)
# A whole plan with tools that all have a cost; code adds up the costs.
EFFICIENCY = Protocol(
    name="efficiency",
    shape="flags",
    rubrics={"plan": "apb-efficiency@1"},
    checks=PLAN_CHECKS,
    admit=_has_costs,
)

PROTOCOLS: Mapping[str, Protocol] = {
    protocol.name: protocol
    for protocol in (HOLISTIC, STEP_WISE, TOOL_EXTRANEOUS, TOOL_BROKEN, UNSOLVABLE, EFFICIENCY)
}
"""The six protocols of the Agent Planning Benchmark (arXiv:2606.04874)."""

# The claims of a case that code can't prove; no tested model is involved.
CASE = Protocol(
    name="case",
    shape="flags",
    rubrics={"plan": "case-plan@1", "steps": "case-steps@1"},
    checks=(),
    template="case@1",
    examines="reference",
)

_BY_NAME: Mapping[str, Protocol] = {**PROTOCOLS, CASE.name: CASE}

ENTRY_POINT_GROUP = "apbjudge.protocols"
AUTO = "auto"


@lru_cache(maxsize=32)
def get_protocol(name: str) -> Protocol:
    """A protocol by name: one of the six, ``case``, or one that an installed package adds.

    Raises:
        OptionError: If there is none with that name.
        PluginError: If the package can't be imported.
    """
    if name in _BY_NAME:
        return _BY_NAME[name]
    protocol = load_plugin(ENTRY_POINT_GROUP, name, Protocol, "--protocol")
    if protocol is None:
        known = ", ".join([*_BY_NAME, AUTO])
        raise OptionError(f"--protocol: expected one of {known}, got {name!r}")
    return protocol


def protocol_of(item: Item) -> Protocol:
    """The protocol of a row (``auto``): by its split, else by its fields."""
    if item.split is not None:
        return PROTOCOLS[SPLITS[item.split][1]]
    if item.condition.unsolvable_type is not None:
        return UNSOLVABLE
    if item.condition.broken_tool is not None:
        return TOOL_BROKEN
    if item.condition.extraneous:
        return TOOL_EXTRANEOUS
    if item.form == "steps":
        return STEP_WISE
    return EFFICIENCY if item.tools is not None and item.tools.has_costs else HOLISTIC
