"""The protocol ``slate``: its figures and table.

Figures are ratios of sums over runs, with cases as clusters. Names and definitions are those of
section 6.1 of the paper; where it leaves a gap, see ``SlateEvaluator.evaluate`` for our choice.
SLATE grades how a given plan is executed, not planning.
"""

from __future__ import annotations

from typing import get_args

from ..base import RunTable, TrajectoryMetric, TrajectoryProtocol
from .evaluator import NEEDS, OUTPUT_TAGS, Fault, evaluator_of

RATE = (0.0, 1.0)


def _share(name: str, of: str, per: str | None, meaning: str) -> TrajectoryMetric:
    return TrajectoryMetric(
        name=name, of=of, per=per, bounds=RATE, better="higher", meaning=meaning
    )


FIGURES = (
    _share("TMR", "tools matched", "calls due", "calls of the plan made with the right tool"),
    _share("AIA", "actions identified", "substeps", "substeps rightly done with or without a tool"),
    _share(
        "arguments matched",
        "arguments matched",
        "tools matched",
        "calls of the right tool with equal arguments, however written",
    ),
    _share(
        "exact arguments",
        "arguments matched exactly",
        "tools matched",
        "calls of the right tool with the same arguments",
    ),
    _share("last output right", "last output right", None, "success by the last call alone"),
)
OUTPUTS = tuple(
    TrajectoryMetric(
        name=f"{tag} outputs",
        of=f"{tag} outputs",
        per="tagged outputs",
        bounds=RATE,
        meaning=f"simulated outputs marked {tag}",
    )
    for tag in OUTPUT_TAGS
)
FAILURES = tuple(
    TrajectoryMetric(name=fault, of=f"failure={fault}", meaning="first departure, of failed runs")
    for fault in get_args(Fault)
)
COSTS = (
    TrajectoryMetric(name="seconds", of="used seconds"),
    TrajectoryMetric(name="input tokens", of="used prompt_tokens"),
    TrajectoryMetric(name="output tokens", of="used completion_tokens"),
    TrajectoryMetric(name="model calls", of="used calls"),
)
SUCCESS = "execution success"

SLATE = TrajectoryProtocol(
    name="slate",
    success=SUCCESS,
    figures=(*FIGURES, *FAILURES, *OUTPUTS, *COSTS),
    evaluator=evaluator_of,
    needs_cases=NEEDS,
    paper="arXiv:2604.12126",
    tables=(
        RunTable(
            key="slate",
            title="Execution of given plans",
            number="Tables 3 and 4",
            figures=(SUCCESS, *(figure.name for figure in FIGURES)),
        ),
        RunTable(
            key="slate-costs",
            title="What an execution takes, per case",
            number="Table 5",
            figures=(SUCCESS, *(figure.name for figure in COSTS)),
        ),
        RunTable(
            key="slate-failures",
            title="Where failed executions first depart from the plan",
            figures=tuple(figure.name for figure in FAILURES),
        ),
        RunTable(
            key="slate-outputs",
            title="Where simulated outputs come from",
            figures=tuple(figure.name for figure in OUTPUTS),
        ),
    ),
)
