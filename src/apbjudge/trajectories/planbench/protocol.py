"""The protocol ``planbench-xl``: its metrics and tables."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from ..base import TrajectoryMetric, TrajectoryProtocol, TrajectoryTable, amount, rate
from .data import BLOCKER_TYPES
from .diagnosis import EXHAUSTION, OTHER_ENDINGS, REUSES, WRONG_VALUES, Failure
from .evaluator import NEEDS, SURRENDER, evaluator_of

KINDS = tuple(BLOCKER_TYPES.values())
_AT_HAND = "N calls with progress at hand"
_ON_PATH = "datatypes obtained that lie on a path, of those obtained"
METRICS = (
    rate("EGT precision", "EGT precision", None, _ON_PATH, "higher"),
    amount("turns", "turns", meaning="responses of the model, per trajectory"),
    amount("EDT", "EDT", meaning="datatypes within reach, beyond those given"),
    amount("S/C", "searches", "calls", "searches per call"),
    rate("ITCR", "invalid calls", "calls", "calls that can't be read or carried out", "lower"),
    rate("UIRR", "untrusted calls", "calls", "calls rejected for an untrusted input", "lower"),
)
PER_CALL = (
    amount("S/C, mean", "searches per call", meaning="mean of each trajectory's own S/C"),
    rate("without calls", "no calls", meaning="trajectories without calls, which have no own S/C"),
)
TOOL_RETURNED = rate("tool returned", "tool returned", meaning="a search returned the one tool")
SEARCHING = (
    amount(
        "searches", "searches", meaning="searches for tools, malformed ones too, per trajectory"
    ),
    amount("calls", "calls", meaning="tool calls, malformed ones too, per trajectory"),
    rate("EGT recall", "EGT recall", meaning="datatypes of the paths that were obtained"),
    amount("F/B", "forward searches", "backward searches", "searches by inputs per one by output"),
    rate("by output", "output searches", "searches", "searches that state an output, of all"),
    rate("rejected calls", "rejected calls", "calls", "ITCR and UIRR together"),
    rate("noisy trajectories", "uses noisy tools", meaning="trajectories that call a noisy tool"),
    amount("noisy calls", "noisy calls", meaning="calls of noisy tools, per trajectory"),
    amount("noisy calls given any", "noisy calls", "uses noisy tools", "per trajectory with any"),
    rate("noisy share", "noisy calls", "calls", "calls of noisy tools, of all calls"),
)
READINGS = (
    *(
        rate(f"Accuracy ({name})", f"correct ({name})", meaning=f"with grounding {name}")
        for name in ("paper", "released", "answer-only")
    ),
    rate("differs from released", "differs from released"),
    rate("differs from answer-only", "differs from answer-only"),
    rate("whole tokens", "correct, whole tokens", meaning="right, and not as part of a token"),
    rate("exact", "correct, exact", meaning="right, and nothing else is stated"),
)
FAILURES = (
    *(
        rate(name, f"failure={name}", meaning="of failed trajectories")
        for name in get_args(Failure)
    ),
    *(
        rate(f"{name}, rule last", f"failure (last)={name}", meaning="of failed trajectories")
        for name in ("Irrecoverable Drift", "Weak Recovery")
    ),
)
_BY_RULE = "of failed trajectories, no Format Error"


def _ending(name: str, *classes: str, needs_model: bool = False) -> TrajectoryMetric:
    """Share of endings in some classes."""
    of, *plus = (f"termination={each}" for each in classes or (name,))
    metric = rate(f"ended {name}", of, meaning=_BY_RULE)
    return replace(metric, title=name, plus=tuple(plus), needs_model=needs_model)


PAPER_ENDINGS = (
    _ending(SURRENDER, needs_model=True),
    _ending(EXHAUSTION),
    _ending("Wrong tool value", *WRONG_VALUES),
    _ending("otherwise", *OTHER_ENDINGS),
)
ENDINGS = (*PAPER_ENDINGS, *map(_ending, (*WRONG_VALUES, *OTHER_ENDINGS)))
SELECTION = (
    rate("(a) progress at hand", _AT_HAND, "N calls"),
    rate("(b) recent tool", "N calls of recent tools", "N calls"),
    rate("(c) not recent", f"{_AT_HAND}, not recent", _AT_HAND),
    rate("(d) back after drift", "useful search after drift", meaning="of drifted trajectories"),
    amount("N calls", "N calls", meaning="calls without progress, per failed trajectory"),
)
BLOCKED = (
    amount("blocked calls", "blocked calls", meaning="calls of blockers, per trajectory"),
    *(rate(f"{kind} blockers", kind, "blocked calls") for kind in KINDS),
    *(rate(f"{kind}, {of}", f"{kind}, {of}", kind) for kind in KINDS for of in REUSES),
    rate("answer adopted", "answer adopted", "blocked calls"),
)
_TABLES = (
    ("searching", "Searches and noisy tools", "", SEARCHING),
    ("readings", "Accuracy by reading of a right answer", "", READINGS),
    ("failures", "Failed trajectories by class", "Figure 6", FAILURES),
    ("selection", "Calls without progress in failed trajectories", "", SELECTION),
    ("blocked", "Values of blocked tools", "Figure 7", BLOCKED),
)
_ENDINGS = TrajectoryTable(
    key="planbench-endings",
    title="Endings of failed trajectories",
    metrics=tuple(metric.name for metric in ENDINGS),
    dominant=tuple(metric.name for metric in PAPER_ENDINGS),
    notes=(
        "Denominator: failed trajectories that did not end in a Format Error",
        f"Wrong tool value: {', '.join(WRONG_VALUES)}; otherwise: {', '.join(OTHER_ENDINGS)}",
        f"{SURRENDER}, before all others: as a judge read the answer",
        "Where code alone judged, an answer that gives up is in another class",
    ),
)
_MAIN = ("Accuracy", *(metric.name for metric in METRICS))
_BY_LENGTH = "PlanBench-XL by length of the shortest path"

PLANBENCH = TrajectoryProtocol(
    name="planbench-xl",
    success="Accuracy",
    metrics=(
        *METRICS,
        *SEARCHING,
        *PER_CALL,
        TOOL_RETURNED,
        *READINGS,
        *FAILURES,
        *ENDINGS,
        *SELECTION,
        *BLOCKED,
    ),
    evaluator=evaluator_of,
    needs_cases=NEEDS,
    paper="arXiv:2606.22388",
    rubric="surrender@1",
    tables=(
        TrajectoryTable(key="planbench", title="PlanBench-XL", number="Table 3", metrics=_MAIN),
        TrajectoryTable(key="planbench-steps", title=_BY_LENGTH, metrics=_MAIN, split="steps"),
        *(
            TrajectoryTable(
                key=f"planbench-{key}",
                title=title,
                number=number,
                metrics=tuple(metric.name for metric in metrics),
            )
            for key, title, number, metrics in _TABLES
        ),
        TrajectoryTable(
            key="planbench-single",
            title="Single-step retrieval",
            number="Table 6",
            metrics=("Accuracy", "tool returned", "turns", "S/C", "ITCR", "EGT precision"),
            only_with="tool returned",
        ),
        _ENDINGS,
        TrajectoryTable(
            key="planbench-outcomes",
            title="Searches per call of solved and failed trajectories",
            metrics=("S/C", *(metric.name for metric in PER_CALL)),
            split="outcome",
            notes=("S/C: searches of all trajectories per call of all; mean: of their own ratios",),
        ),
        TrajectoryTable(
            key="planbench-correlations",
            title="Correlation with Accuracy over tested models",
            correlates=("EDT", "EGT precision", "ITCR", "by output"),
            notes=(
                "Fisher's interval, as if the models were drawn independently: many are relatives",
                "Scored: tested models; fewer than 4 have no interval",
            ),
        ),
    ),
)
