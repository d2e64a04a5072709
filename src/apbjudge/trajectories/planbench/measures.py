"""Measures of one trajectory: searches, calls, datatypes reached, and verdicts on its answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ...config import Grounding
from ...records.trajectories import Trajectory, TrajectoryStep
from .answers import contains, contains_token, equals
from .data import PlanBenchData, Query

UNTRUSTED_INPUT = "untrusted_input_rejected"


def trusted_output(step: TrajectoryStep) -> str:
    """Datatype that the step's call obtained from an executable tool; empty without."""
    done = step.execution
    return done.output_datatype if done is not None and done.provenance == "trusted" else ""


def verdicts(trajectory: Trajectory, query: Query) -> Mapping[Grounding, bool]:
    """Returns, for each reading of "grounded", True if the answer counts as right.

    It must contain the right value (arXiv:2606.22388, app. B.8.1), and

    * ``answer-only``: nothing else;
    * ``paper``: an executable tool must have returned the target datatype;
    * ``released``: in addition it must contain no value that a noisy tool or a blocker returned for
      the target datatype, even if it is the same value. The authors' code does this, and it fails
      right answers that contain a value of a noisy tool that was called.
    """
    says = trajectory.final_answer is not None and contains(
        trajectory.final_answer, query.correct_answer
    )
    has_target = any(trusted_output(step) == query.target_datatype for step in trajectory.steps)
    return {
        "answer-only": says,
        "paper": says and has_target,
        "released": says and has_target and not is_contaminated(trajectory, query),
    }


def is_contaminated(trajectory: Trajectory, query: Query) -> bool:
    """True if the answer contains a value that an untrusted tool returned for the target."""
    return any(
        done.provenance == "untrusted"
        and done.output_datatype == query.target_datatype
        and contains(trajectory.final_answer, done.output_value)
        for step in trajectory.steps
        if (done := step.execution) is not None
    )


def closure(held: Collection[str], interfaces: Iterable[tuple[frozenset[str], str]]) -> set[str]:
    """All datatypes that follow from some by tools, each of these given as inputs and output."""
    reached, waiting = {*held}, {*interfaces}
    while ready := {tool for tool in waiting if tool[0] <= reached}:
        waiting -= ready
        reached.update(output for _, output in ready)
    return reached


def measures_of(
    trajectory: Trajectory, query: Query, data: PlanBenchData, grounding: Grounding
) -> dict[str, float]:
    """The measures of a trajectory (app. B.8.1); every metric is a mean or ratio of them.

    ``searches`` and ``calls`` count malformed ones too. ``EDT`` are the datatypes within reach
    beyond those held at the start: all that follow from these and from trusted outputs by any
    retrieved tool, noisy tools and blockers included. A trajectory that obtained nothing has no
    ``EGT precision``, and one without calls no ``searches per call``. For a task that one tool
    solves, ``tool returned`` is 1 if a search returned it. Searches by inputs and output count as
    neither forward nor backward, but as ``output searches``.
    """
    steps = trajectory.steps
    searches = [step.retrieval for step in steps if step.retrieval is not None]
    calls = [(step.calls[0], done) for step in steps if (done := step.execution) is not None]
    rejected = [done.rejection for _, done in calls if not done.was_executed]
    untrusted = rejected.count(UNTRUSTED_INPUT)
    invalid = len(rejected) - untrusted - rejected.count("blocked")
    noisy = sum(
        call.name in data.noisy or done.tool_type.lower().startswith("noisy")
        for call, done in calls
    )
    executed = {output for step in steps if (output := trusted_output(step))}
    interfaces = {
        (frozenset(tool.inputs), tool.output) for search in searches for tool in search.tools or ()
    }
    paths = data.paths[query.task_id]
    truth = frozenset[str]().union(*(path.datatypes for path in paths))
    on_path = executed & truth
    of, answer, gold = verdicts(trajectory, query), trajectory.final_answer, query.correct_answer
    is_correct = of[grounding]
    measures: dict[str, float] = {
        "turns": sum(step.source == "agent" for step in steps),
        "searches": len(searches),
        "forward searches": sum(s.by_inputs and not s.by_output for s in searches),
        "backward searches": sum(s.by_output and not s.by_inputs for s in searches),
        "output searches": sum(s.by_output for s in searches),
        "calls": len(calls),
        "no calls": not calls,
        "invalid calls": invalid,
        "untrusted calls": untrusted,
        "rejected calls": invalid + untrusted,
        "noisy calls": noisy,
        "uses noisy tools": noisy > 0,
        "EDT": len(closure(query.input_datatypes | executed, interfaces) - query.input_datatypes),
        "executed datatypes": len(executed),
        "executed on path": len(on_path),
        "ground truth datatypes": len(truth),
        "EGT recall": len(on_path) / len(truth),
        **{f"correct ({name})": value for name, value in of.items()},
        "correct, whole tokens": is_correct and contains_token(answer, gold),
        "correct, exact": is_correct and equals(answer, gold),
        "differs from released": is_correct != of["released"],
        "differs from answer-only": is_correct != of["answer-only"],
    }
    if len(paths) == 1 and len(paths[0].tools) == 1:
        returned = {tool.name for search in searches for tool in search.tools or ()}
        measures["tool returned"] = paths[0].tools <= returned
    if calls:
        measures["searches per call"] = len(searches) / len(calls)
    if executed:
        measures["EGT precision"] = len(on_path) / len(executed)
    return {name: float(value) for name, value in measures.items()}
