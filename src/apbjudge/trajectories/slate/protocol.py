"""The protocol ``slate``: its metrics and table.

Metrics are ratios of sums over trajectories, with cases as clusters. Names and definitions are
those of section 6.1 of the paper; see ``SlateEvaluator.evaluate`` for our choices where it leaves
gaps. SLATE grades the execution of a given plan, not planning.
"""

from __future__ import annotations

from typing import get_args

from ..base import TrajectoryProtocol, TrajectoryTable, amount, rate
from .evaluator import NEEDS, OUTPUT_TAGS, Fault, evaluator_of

_EQUAL = "calls of the right tool with equal arguments, however written"
_SAME = "calls of the right tool with the same arguments"
METRICS = tuple(
    rate(name, of, per, meaning, "higher")
    for name, of, per, meaning in (
        ("TMR", "tools matched", "calls due", "calls of the plan made with the right tool"),
        ("AIA", "actions identified", "substeps", "substeps rightly done with or without a tool"),
        ("arguments matched", "arguments matched", "tools matched", _EQUAL),
        ("exact arguments", "arguments matched exactly", "tools matched", _SAME),
        ("last output right", "last output right", None, "success by the last call alone"),
    )
)
OUTPUTS = tuple(
    rate(f"{tag} outputs", f"{tag} outputs", "tagged outputs", f"simulated outputs marked {tag}")
    for tag in OUTPUT_TAGS
)
MEMORY = (
    rate("success inside memory", "right inside memory", None, "cases with all tools in it"),
    rate("success outside memory", "right outside memory", None, "cases with a tool not in it"),
    *(
        rate(
            f"TMR {place} memory",
            f"tools matched {place} memory",
            f"calls due {place} memory",
            "calls of the plan made with the right tool",
        )
        for place in ("inside", "outside")
    ),
    rate("tools in memory", "calls due inside memory", "calls due", "calls whose tool is in it"),
)
FAILURES = tuple(
    amount(fault, f"failure={fault}", meaning="first departure, of failed trajectories")
    for fault in get_args(Fault)
)
COSTS = (
    amount("seconds", "used seconds"),
    amount("input tokens", "used prompt_tokens"),
    amount("output tokens", "used completion_tokens"),
    amount("model calls", "used calls"),
)
SUCCESS = "execution success"
_DEPARTED = "Where failed executions first depart from the plan"
_TABLES = (
    ("slate", "Execution of given plans", "Tables 3 and 4", (SUCCESS,), METRICS),
    ("slate-costs", "What an execution takes, per case", "Table 5", (SUCCESS,), COSTS),
    ("slate-failures", _DEPARTED, "", (), FAILURES),
    ("slate-memory", "Execution with a memory of other cases", "Table 7", (SUCCESS,), MEMORY),
    ("slate-outputs", "Where simulated outputs come from", "", (), OUTPUTS),
)

SLATE = TrajectoryProtocol(
    name="slate",
    version=2,
    success=SUCCESS,
    metrics=(*METRICS, *FAILURES, *MEMORY, *OUTPUTS, *COSTS),
    evaluator=evaluator_of,
    needs_cases=NEEDS,
    compares_texts=True,
    paper="arXiv:2604.12126",
    tables=tuple(
        TrajectoryTable(
            key=key, title=title, number=number, metrics=(*first, *(of.name for of in metrics))
        )
        for key, title, number, first, metrics in _TABLES
    ),
)
