"""The protocol ``planbench-xl``: its figures and tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from ..base import RunTable, TrajectoryMetric, TrajectoryProtocol
from .data import BLOCKER_TYPES
from .diagnosis import REUSES, Failure
from .evaluator import NEEDS, evaluator_of

RATE = (0.0, 1.0)


def _count(name: str, of: str, per: str | None = None, meaning: str = "") -> TrajectoryMetric:
    return TrajectoryMetric(name=name, of=of, per=per, meaning=meaning)


def _share(name: str, of: str, per: str | None = None, meaning: str = "") -> TrajectoryMetric:
    return TrajectoryMetric(name=name, of=of, per=per, bounds=RATE, meaning=meaning)


FIGURES = (
    TrajectoryMetric(
        name="EGT precision",
        of="EGT precision",
        bounds=RATE,
        better="higher",
        meaning="datatypes obtained that lie on a path, of those obtained",
    ),
    _count("turns", "turns", meaning="responses of the model, per run"),
    _count("EDT", "EDT", meaning="datatypes within reach, beyond those given"),
    _count("S/C", "searches", "calls", "searches per call"),
    TrajectoryMetric(
        name="ITCR",
        of="invalid calls",
        per="calls",
        bounds=RATE,
        better="lower",
        meaning="calls that can't be read or carried out",
    ),
    TrajectoryMetric(
        name="UIRR",
        of="untrusted calls",
        per="calls",
        bounds=RATE,
        better="lower",
        meaning="calls rejected for an untrusted input",
    ),
)
SEARCHING = (
    _count("searches", "searches", meaning="searches for tools, malformed ones too, per run"),
    _count("calls", "calls", meaning="tool calls, malformed ones too, per run"),
    _share("EGT recall", "EGT recall", meaning="datatypes of the paths that were obtained"),
    _count("F/B", "forward searches", "backward searches", "searches by inputs per one by output"),
    _share("rejected calls", "rejected calls", "calls", "ITCR and UIRR together"),
    _share("noisy runs", "uses noisy tools", meaning="runs that call a noisy tool"),
    _count("noisy calls", "noisy calls", meaning="calls of noisy tools, per run"),
    _count("noisy calls given any", "noisy calls", "uses noisy tools", "per run with any"),
    _share("noisy share", "noisy calls", "calls", "calls of noisy tools, of all calls"),
)
READINGS = (
    *(
        _share(f"Accuracy ({name})", f"correct ({name})", meaning=f"with grounding {name}")
        for name in ("paper", "released", "answer-only")
    ),
    _share("differs from released", "differs from released"),
    _share("differs from answer-only", "differs from answer-only"),
    _share("whole tokens", "correct, whole tokens", meaning="right, and not as part of a token"),
    _share("exact", "correct, exact", meaning="right, and nothing else is stated"),
)
FAILURES = (
    *(_share(name, f"failure={name}", meaning="of failed runs") for name in get_args(Failure)),
    *(
        _share(f"{name}, rule last", f"failure (last)={name}", meaning="of failed runs")
        for name in ("Irrecoverable Drift", "Weak Recovery")
    ),
)
ENDINGS = (
    TrajectoryMetric(name="ended", of="termination=*", meaning="of failed runs, no Format Error"),
)
SELECTION = (
    _share("(a) progress at hand", "N calls with progress at hand", "N calls"),
    _share("(b) recent tool", "N calls of recent tools", "N calls"),
    _share(
        "(c) not recent",
        "N calls with progress at hand, not recent",
        "N calls with progress at hand",
    ),
    _share("(d) back after drift", "useful search after drift", meaning="of drifted runs"),
    _count("N calls", "N calls", meaning="calls without progress, per failed run"),
)
BLOCKED = (
    _count("blocked calls", "blocked calls", meaning="calls of blockers, per run"),
    *(_share(f"{kind} blockers", kind, "blocked calls") for kind in BLOCKER_TYPES.values()),
    *(
        _share(f"{kind}, {reuse}", f"{kind}, {reuse}", kind)
        for kind in BLOCKER_TYPES.values()
        for reuse in REUSES
    ),
    _share("answer adopted", "answer adopted", "blocked calls"),
)


def _names(figures: Iterable[TrajectoryMetric]) -> tuple[str, ...]:
    return tuple(figure.name for figure in figures)


_MAIN = ("Accuracy", *_names(FIGURES))
PLANBENCH = TrajectoryProtocol(
    name="planbench-xl",
    success="Accuracy",
    figures=(*FIGURES, *SEARCHING, *READINGS, *FAILURES, *ENDINGS, *SELECTION, *BLOCKED),
    evaluator=evaluator_of,
    needs_cases=NEEDS,
    paper="arXiv:2606.22388",
    rubric="surrender@1",
    tables=(
        RunTable(key="planbench", title="PlanBench-XL", number="Table 3", figures=_MAIN),
        RunTable(
            key="planbench-steps",
            title="PlanBench-XL by length of the shortest path",
            figures=_MAIN,
            split="steps",
        ),
        RunTable(
            key="planbench-searching", title="Searches and noisy tools", figures=_names(SEARCHING)
        ),
        RunTable(
            key="planbench-readings",
            title="Accuracy by reading of a right answer",
            figures=_names(READINGS),
        ),
        RunTable(
            key="planbench-failures",
            title="Failed runs by class",
            number="Figure 6",
            figures=_names(FAILURES),
        ),
        RunTable(
            key="planbench-selection",
            title="Calls without progress in failed runs",
            figures=_names(SELECTION),
        ),
        RunTable(
            key="planbench-blocked",
            title="Values of blocked tools",
            number="Figure 7",
            figures=_names(BLOCKED),
        ),
    ),
)
