"""Next steps: a trajectory cut where a call was due; what the agent did next is the reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ....records.trajectories import TrajectoryStep
from ....trajectories.steps import call_ids, messages_of, prediction_of
from ..cases import Context, Reject, Row, case_row
from ..seeds import Seed, SeedCall
from ..sources.solutions import calls_made
from .plans import NO_CALLS

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


def step_wise(seed: Seed, context: Context) -> Iterator[Row | Reject]:
    """A case for each cut and each number of steps that are left there."""
    if not seed.calls:
        yield Reject("step_wise", NO_CALLS)
        return
    n_made = 0
    for cut in cuts_of(seed):
        for k in context.horizons:
            if (steps := next_steps(seed, cut, k)) is None:
                continue
            n_made += 1
            yield case_row(
                seed,
                context,
                split="step_wise_planning",
                transform="step_wise",
                tools=seed.toolset.tools,
                **fields_of(seed, cut, steps),
            )
    if not n_made:
        yield Reject("step_wise", "too few steps")


def fields_of(seed: Seed, cut: Cut, steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What ``case_row`` needs to know of next steps at a cut."""
    return {
        "parts": (cut.stage, len(steps)),
        "query": query_of_steps(seed),
        "horizon": len(steps),
        "stage": cut.stage,
        "prefix": cut.prefix,
        "steps": steps,
        "remaining": cut.steps[len(steps) :],
    }


def cuts_of(seed: Seed) -> list[Cut]:
    """Places to cut the trajectory at: a quarter, a half and three quarters of its calling steps.

    Places that fall together are one. Only steps with a call that worked count, so that attempts
    that failed directly before a place are shown. Without results, only the beginning can be shown.
    """
    trajectory = seed.trajectory
    hidden = call_ids(trajectory.steps, "user") - call_ids(trajectory.steps, "agent")
    if not seed.has_results:
        return [Cut("early", (), tuple(_step_of(call) for call in seed.calls))]
    worked = list(_worked(trajectory.steps))
    asked = _first_turn(seed)
    cuts: list[Cut] = []
    taken: set[int] = set()
    for quarter, stage in enumerate(STAGES, start=1):
        first = len(worked) * quarter // 4
        if first in taken:
            continue
        taken.add(first)
        (at, step, _), *later = worked[first:]
        before = [each for place, each in enumerate(trajectory.steps[:at]) if place != asked]
        # What the agent said after a failure that the tested model does not see speaks of it.
        after = [
            step,
            *(replace(s, thought="", text="") if is_retry else s for _, s, is_retry in later),
        ]
        cuts.append(
            Cut(
                stage,
                tuple(message for each in before for message in messages_of(each, hidden)),
                tuple(prediction_of(each) for each in after),
            )
        )
    return cuts


def _worked(steps: Sequence[TrajectoryStep]) -> Iterator[tuple[int, TrajectoryStep, bool]]:
    """The agent's steps with the calls that worked alone, and whether a failure came before."""
    is_retry = False
    for at, step in enumerate(steps):
        made = list(calls_made([step]))
        if kept := tuple(c for c, of in zip(step.calls, made, strict=False) if not of.is_failed):
            yield at, replace(step, calls=kept), is_retry
        if made:
            is_retry = any(of.is_failed for of in made)


def query_of_steps(seed: Seed) -> str:
    """What the user asked first: of several turns the later ones are in the messages."""
    first = _first_turn(seed)
    text = "" if first is None else seed.trajectory.steps[first].text
    return text if text and text in seed.trajectory.query else seed.trajectory.query


def _first_turn(seed: Seed) -> int | None:
    """Index of the step in which the user asks, which is not among the messages again."""
    steps = seed.trajectory.steps
    return next((at for at, s in enumerate(steps) if s.source == "user" and s.text), None)


def next_steps(seed: Seed, cut: Cut, k: int) -> Sequence[dict[str, Any]] | None:
    """The next k steps of a cut; None where fewer are left, or a value could not be known."""
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
    made = {"type": "function", "function": {"name": call.name, "arguments": arguments}}
    return {"role": "assistant", "thought": "", "tool_calls": [made]}
