"""Next steps: a trajectory cut before a call, with the agent's next steps as the reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ....records.trajectories import ToolCall, TrajectoryStep
from ....trajectories.steps import call_ids, messages_of, prediction_of
from ..cases import Context, Reject, Row, RowMaker, transform
from ..seeds import Seed, SeedCall
from ..sources.solutions import agent_calls

TOO_FEW_STEPS = "too few steps"
STAGES = ("early", "middle", "late")
PLACEHOLDER = "PREVIOUS_RESULT"
"""Stands for a value that an earlier predicted step would yield."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A place in a trajectory from which the next steps are asked for.

    Attributes:
        stage: ``early``, ``middle`` or ``late``.
        prefix: The messages before it; calls that failed are among them.
        steps: The agent's steps from there on with calls that worked, each as a predicted step.
    """

    stage: str
    prefix: tuple[dict[str, Any], ...]
    steps: tuple[dict[str, Any], ...]


@transform("step_wise_planning")
def step_wise(seed: Seed, context: Context, row: RowMaker) -> Iterator[Row | Reject]:
    """A case for each cut and each number of steps that are left there."""
    asked = next_steps(seed, context)
    yield from (row(**fields) for fields in asked)
    if not asked:
        yield Reject(TOO_FEW_STEPS)


def next_steps(seed: Seed, context: Context) -> list[dict[str, Any]]:
    """Arguments of ``case_row`` for each cut and each number of steps that can be asked for."""
    return [
        _fields(seed, cut, steps)
        for cut in cuts_of(seed)
        for k in context.horizons
        if (steps := _next(seed, cut, k)) is not None
    ]


def _fields(seed: Seed, cut: Cut, steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "parts": (cut.stage, len(steps)),
        "query": query_of_steps(seed),
        "prediction_horizon": len(steps),
        "stage": cut.stage,
        "trajectory_prefix": cut.prefix,
        "ground_truth_steps": steps,
        "reference_remaining_steps": cut.steps[len(steps) :],
    }


def cuts_of(seed: Seed) -> list[Cut]:
    """The cuts of a trajectory: at a quarter, a half and three quarters of its steps with calls.

    Equal places give one cut. Only steps with a call that worked count, so that attempts that
    failed directly before a place are shown. Without results, only the beginning can be shown.
    """
    if not seed.has_results:
        return [Cut("early", (), tuple(_step_of(call) for call in seed.calls))]
    worked = list(_worked(seed.trajectory.steps))
    cuts: list[Cut] = []
    taken: set[int] = set()
    for quarter, stage in enumerate(STAGES, start=1):
        first = len(worked) * quarter // 4
        if first in taken:
            continue
        taken.add(first)
        (at, step, _), *later = worked[first:]
        # The agent's text after a failure mentions the failure, which is not shown.
        after = [
            step,
            *(replace(s, thought="", text="") if is_retry else s for _, s, is_retry in later),
        ]
        cuts.append(Cut(stage, tuple(messages_before(seed, at)), tuple(map(prediction_of, after))))
    return cuts


def messages_before(seed: Seed, end: int) -> list[dict[str, Any]]:
    """The messages before a step, without the user's first turn, which is the query."""
    steps, asked = seed.trajectory.steps, seed.turns[:1]
    hidden = call_ids(steps, "user") - call_ids(steps, "agent")
    shown = [step for at, step in enumerate(steps[:end]) if at not in asked]
    return [message for step in shown for message in messages_of(step, hidden)]


def _worked(steps: Sequence[TrajectoryStep]) -> Iterator[tuple[int, TrajectoryStep, bool]]:
    """The agent's steps with successful calls only, and whether a failure came before."""
    is_retry = False
    for at, step in enumerate(steps):
        attempts = list(agent_calls([step]))
        if calls := tuple(c for c, a in zip(step.calls, attempts, strict=False) if not a.is_failed):
            yield at, replace(step, calls=calls), is_retry
        if attempts:
            is_retry = any(attempt.is_failed for attempt in attempts)


def query_of_steps(seed: Seed) -> str:
    """The user's first turn; later turns are in the messages."""
    query, trajectory = seed.trajectory.query, seed.trajectory
    first = "".join(trajectory.steps[at].text for at in seed.turns[:1])
    return first if first and first in query else query


def _next(seed: Seed, cut: Cut, k: int) -> Sequence[dict[str, Any]] | None:
    """The next k steps of a cut; None if fewer are left, or a value could not be known."""
    if len(cut.steps) < k:
        return None
    if seed.has_results:
        return cut.steps[:k]
    calls = seed.calls[:k]
    if any(at >= k for call in calls for at in call.needs.values()):
        return None
    return [_step_of(call) for call in calls]


def _step_of(call: SeedCall) -> dict[str, Any]:
    """A call as a predicted step; results of earlier calls are placeholders."""
    arguments = {
        name: PLACEHOLDER if name in call.needs else value for name, value in call.arguments.items()
    }
    return predicted(call.name, arguments)


def predicted(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A step that makes one call, in the published form of a predicted step."""
    return prediction_of(TrajectoryStep("agent", calls=(ToolCall(name, arguments),)))
