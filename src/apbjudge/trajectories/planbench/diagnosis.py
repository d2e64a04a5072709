"""Causes of a trajectory's failure, calls that made progress, and use of blocked tools' values.

The categories are those of arXiv:2606.22388, section 6, for which no code is published; the
docstrings state our choices where that text leaves any.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ...records import Finding
from ...records.loose_json import as_list, as_object
from ...records.trajectories import Execution, RetrievedTool, Trajectory, TrajectoryStep
from .answers import as_text, contains, contains_token
from .data import BLOCKER_TYPES, PlanBenchData, Query
from .folder import HTTP_400
from .measures import trusted_output

FORMAT_ERRORS = (
    "exceeded_max_label_errors",
    "exceeded_max_retrieval_errors",
    "exceeded_max_tool_call_errors",
)
"""Terminations of a trajectory after three consecutive faults of one kind."""
RECENT_SEARCHES = 2
LAST_STEPS = 10
_GIVES_UP = re.compile(
    r"\b(?:can ?not|can['’]?t|could ?n['’]?t|could not|unable to|not able to|impossible to"
    r"|not possible to|failed to)\b[^.]{0,40}?"
    r"\b(?:be )?(?:determin|find|found|identif|retriev|obtain|provid|access|confirm|verif|resolv"
    r"|locat|trac|answer)"
    r"|\b(?:not available|unavailable|no (?:tool|path|result|record|data|information)s?\b"
    r"|insufficient|unknown|undetermined)",
    re.IGNORECASE,
)

Failure = Literal["Format Error", "No Traction", "Stalled", "Irrecoverable Drift", "Weak Recovery"]


# Progress -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExecutedCall:
    """A call that passed the environment's checks.

    Attributes:
        step: Index of its step.
        is_progress: True if it obtained a new datatype on an open path.
        useful: For each tool that would have been progress, the number of searches since it was
            last returned; 1 is the latest search.
        age: The same for the tool called.
    """

    step: int
    is_progress: bool
    useful: tuple[int, ...]
    age: int


@dataclass(frozen=True, slots=True)
class Walk:
    """The executed calls, and the searches that returned a tool that would be progress."""

    calls: list[ExecutedCall] = field(default_factory=list[ExecutedCall])
    useful_searches: list[int] = field(default_factory=list[int])

    @property
    def word(self) -> str:
        """A letter for each executed call: P for progress, N for none."""
        return "".join("P" if call.is_progress else "N" for call in self.calls)


def walk(trajectory: Trajectory, query: Query, data: PlanBenchData) -> Walk:
    """Follows a trajectory call by call.

    A call is progress if it obtains, from an executable tool, a datatype that the trajectory does
    not hold yet and that is on an open path: a catalogued path of the task without a blocked tool.
    The log does not state the blocked tools; a tool counts as blocked if a search of the trajectory
    returned something in its place. A tool that never came up in a search is therefore not known to
    be blocked, which can only make more calls count as progress. Searches that failed or found
    nothing are searches too, but only the latter count in the age of a tool's last return.
    """
    blocked = {
        data.blockers[tool.name].baseline_tool_name
        for step in trajectory.steps
        for tool in (step.retrieval.tools if step.retrieval else None) or ()
        if tool.name in data.blockers
    }
    open_paths = [path for path in data.paths[query.task_id] if not path.tools & blocked]
    on_path = frozenset[str]().union(*(path.datatypes for path in open_paths))
    held, searches = {*query.input_datatypes}, 0
    tools: dict[str, RetrievedTool] = {}
    returned: dict[str, int] = {}

    def is_useful(tool: RetrievedTool) -> bool:
        is_clean = tool.name in data.baseline
        return is_clean and held.issuperset(tool.inputs) and is_new(tool.output)

    def is_new(datatype: str) -> bool:
        return datatype in on_path and datatype not in held

    walk = Walk()
    for i, step in enumerate(trajectory.steps):
        if step.retrieval is not None and step.retrieval.tools is not None:
            searches += 1
            for tool in step.retrieval.tools:
                tools[tool.name], returned[tool.name] = tool, searches
            if any(map(is_useful, step.retrieval.tools)):
                walk.useful_searches.append(i)
        elif step.execution is not None and step.execution.was_executed:
            output = trusted_output(step)
            walk.calls.append(
                ExecutedCall(
                    step=i,
                    is_progress=is_new(output),
                    useful=tuple(
                        searches - returned[name] + 1
                        for name, tool in tools.items()
                        if is_useful(tool)
                    ),
                    age=searches - returned.get(step.calls[0].name, 0) + 1,
                )
            )
            held |= {output} - {""}
    return walk


def failure_of(word: str, termination: str, *, rule: Literal["first", "last"] = "first") -> Failure:
    """The class of a failed trajectory, the first that fits.

    ``Format Error``: ended by three faults in a row. ``No Traction``: no progress at all. Then,
    after the first progress: ``Stalled`` if every call was progress until the end (a class of
    ours); ``Irrecoverable Drift`` if no progress follows the first call without progress; else
    ``Weak Recovery``. Under the rule ``last``, a trajectory whose last call is not progress has
    drifted.

    Args:
        word: Letters of the executed calls.
        termination: Reason of the trajectory's end, as the environment states it.
        rule: The reading of "irrecoverable".
    """
    if termination in FORMAT_ERRORS:
        return "Format Error"
    if "P" not in word:
        return "No Traction"
    after = word[word.index("P") :]
    if "N" not in after:
        return "Stalled"
    has_drifted = after.endswith("N") if rule == "last" else "P" not in after[after.index("N") :]
    return "Irrecoverable Drift" if has_drifted else "Weak Recovery"


def first_error(trajectory: Trajectory, walk: Walk) -> int | None:
    """Index of the step with a failed trajectory's first fault that no progress follows.

    Faults are executed calls without progress, actions that were rejected or can't be read, and the
    answer. None for a trajectory that only searched on to its end.
    """
    last = max((call.step for call in walk.calls if call.is_progress), default=-1)
    for i, step in enumerate(trajectory.steps[last + 1 :], start=last + 1):
        is_failed_search = step.retrieval is not None and step.retrieval.tools is None
        if step.kind in {"call", "answer", "invalid"} or is_failed_search:
            return i
    return None


def selection_measures(walk: Walk, failure: Failure) -> dict[str, float]:
    """Counts that tell if a failed trajectory chose a wrong tool or had no right one (table 9).

    Its calls without progress: those for which a retrieved tool would have been progress, those of
    these where that tool was not among the last two searches' results, and those whose own tool
    was. For a drifted trajectory, 1 if a later search returned such a tool.
    """
    wasted = [call for call in walk.calls if not call.is_progress]
    at_hand = [call for call in wasted if call.useful]
    measures: dict[str, float] = {
        "N calls": len(wasted),
        "N calls with progress at hand": len(at_hand),
        "N calls with progress at hand, not recent": sum(
            min(call.useful) > RECENT_SEARCHES for call in at_hand
        ),
        "N calls of recent tools": sum(call.age <= RECENT_SEARCHES for call in wasted),
    }
    if failure == "Irrecoverable Drift":
        start = walk.calls[walk.word.index("N", walk.word.index("P"))].step
        measures["useful search after drift"] = any(i > start for i in walk.useful_searches)
    return measures


# Blocked tools ------------------------------------------------------------------------------------

REUSES = ("value reused", "search reused", "ambiguous", "unused")


def blocked_measures(trajectory: Trajectory, query: Query, data: PlanBenchData) -> dict[str, float]:
    """Counts calls of blockers by the use of the values that they returned (section 6.2).

    By kind (``explicit``, ``implicit``, ``misleading``) and the first that fits: ``value reused``,
    a later call, executed or not, has it as an argument; ``search reused``, a later search starts
    from its datatype, which no executable tool has supplied; ``ambiguous``, a reused value that may
    have another source (the query, an earlier argument, another tool); ``unused``. Misleading
    blockers declare datatypes that match no search of the environment, so that only a search for
    the datatype by name counts for them. ``answer adopted`` counts calls whose value the final
    answer states, unless the right answer contains it. Apart from ``blocked calls``, nothing is
    stated of a trajectory that called no blocker.
    """
    counts: Counter[str] = Counter()
    for i, step in enumerate(trajectory.steps):
        done = step.execution
        blocker = data.blockers.get(step.calls[0].name) if step.calls else None
        if done is None or not done.was_executed or blocker is None:
            continue
        kind = BLOCKER_TYPES[blocker.noise_type]
        counts[kind] += 1
        counts[f"{kind}, {_reuse(trajectory, query, i, done)}"] += 1
        value = done.output_value
        is_adopted = contains_token(trajectory.final_answer, value)
        counts["answer adopted"] += is_adopted and not contains(query.correct_answer, value)
    kinds = BLOCKER_TYPES.values()
    measures = {"blocked calls": float(sum(counts[kind] for kind in kinds))}
    if measures["blocked calls"]:
        names = [*kinds, *(f"{kind}, {reuse}" for kind in kinds for reuse in REUSES)]
        measures |= {name: float(counts[name]) for name in (*names, "answer adopted")}
    return measures


def _reuse(trajectory: Trajectory, query: Query, at: int, done: Execution) -> str:
    value, tool = as_text(done.output_value), trajectory.steps[at].calls[0].name
    from_elsewhere = contains_token(query.query_text, value) or any(
        value in _arguments(trajectory, i) for i in range(at + 1)
    )
    held, is_ambiguous, is_searched = {*query.input_datatypes}, False, False
    for i, step in enumerate(trajectory.steps):
        if i > at and value and value in _arguments(trajectory, i):
            if not from_elsewhere:
                return "value reused"
            is_ambiguous = True
        if i > at and step.retrieval is not None and done.output_datatype not in held:
            is_searched |= done.output_datatype in _starts(step)
        if step.execution is not None and step.calls[0].name != tool:
            from_elsewhere |= as_text(step.execution.output_value) == value
        held |= {trusted_output(step)}
    return "search reused" if is_searched else "ambiguous" if is_ambiguous else "unused"


def _starts(step: TrajectoryStep) -> set[str]:
    """The datatypes that a search starts from: matched ones, and the requested words as names."""
    asked = (as_object(step.extra.get("request")) or {}).get("input_information")
    names = {"_".join(str(phrase).lower().split()) for phrase in as_list(asked) or ()}
    return names.union(step.retrieval.inputs if step.retrieval else ())


def _arguments(trajectory: Trajectory, at: int) -> set[str]:
    """The values of the arguments of a step's call."""
    given = (as_object(call.arguments) or {} for call in trajectory.steps[at].calls)
    return {as_text(value) for arguments in given for value in arguments.values()}


# Termination --------------------------------------------------------------------------------------


_STATED: Mapping[tuple[str, bool], str] = {
    ("untrusted", True): "Untrusted value of the target",
    ("trusted", True): "Target of another record",
    ("trusted", False): "Trusted value of another datatype",
    ("untrusted", False): "Untrusted value of another datatype",
}
_UNOBSERVED = "Value never observed"
WRONG_VALUES = (*_STATED.values(), _UNOBSERVED)
"""Endings with a wrong value, which are one class in the paper."""
EXHAUSTION = "Search exhaustion"
UNFINISHED, UNGROUNDED = "Unfinished", "Right but ungrounded"
CONTAMINATED = "Right but contaminated"
OTHER_ENDINGS = (UNFINISHED, UNGROUNDED, CONTAMINATED)
"""Endings that the paper has no class for."""


def termination_of(trajectory: Trajectory, query: Query) -> str:
    """Returns the ending of a failed trajectory (section 6.3), as far as rules can tell.

    Without an answer: ``Search exhaustion`` if more than half of the last ten steps are searches,
    else ``Unfinished``. With one, by its content, the first that fits: the right value although no
    executable tool returned it (``Right but ungrounded``) or an untrusted one did as well (``Right
    but contaminated``); a value that an untrusted tool returned for the target; a value that
    executable tools returned for it (of another record), or for another datatype; another value of
    untrusted tools; no observed value. Giving up is not decided here.
    """
    if trajectory.final_answer is None:
        last = trajectory.steps[-LAST_STEPS:]
        searches = sum(step.kind == "retrieve" for step in last)
        is_exhausted = trajectory.termination != HTTP_400 and 2 * searches > len(last)
        return EXHAUSTION if is_exhausted else UNFINISHED
    target = query.target_datatype
    if contains_token(trajectory.final_answer, query.correct_answer):
        has_target = any(trusted_output(step) == target for step in trajectory.steps)
        return CONTAMINATED if has_target else UNGROUNDED
    stated = {
        (done.provenance, done.output_datatype == target)
        for step in trajectory.steps
        if (done := step.execution) is not None
        and contains_token(trajectory.final_answer, done.output_value)
    }
    return next((name for kind, name in _STATED.items() if kind in stated), _UNOBSERVED)


def findings_of(trajectory: Trajectory) -> Iterator[Finding]:
    """A suspicion for an answer that may state that there is none."""
    if trajectory.final_answer and (phrase := _GIVES_UP.search(trajectory.final_answer)):
        yield Finding(
            code=None,
            certainty="suspected",
            where="final_answer",
            message=f"The answer may give up: {' '.join(phrase.group().split())!r}",
            rule="surrender-phrase",
        )
