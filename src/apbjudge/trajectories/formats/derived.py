"""What follows from the steps of a run, whatever log they come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ...records.messages import Message, Messages, Role
from ...records.trajectories import StepSource, TrajectoryStep

_SOURCES: Mapping[Role, StepSource] = {
    "system": "system",
    "user": "user",
    "assistant": "agent",
    "tool": "environment",
}
_ROLES: Mapping[StepSource, Role] = {source: role for role, source in _SOURCES.items()}


def steps_of(messages: Iterable[Message]) -> tuple[TrajectoryStep, ...]:
    """A step for each message."""
    return tuple(
        TrajectoryStep(
            _SOURCES[of.role],
            "call" if of.calls else "message",
            of.text,
            of.reasoning,
            of.calls,
            of.results,
            extra=of.extra,
            sources=of.entries,
        )
        for of in messages
    )


def message_of(step: TrajectoryStep) -> Message:
    """The chat message that a step is."""
    return Message(_ROLES[step.source], step.text, step.thought, step.calls, step.observations)


def query_of(steps: Sequence[TrajectoryStep]) -> str:
    """The first thing that the user says; empty where nothing."""
    return _conversation(steps).query


def final_answer_of(steps: Sequence[TrajectoryStep]) -> str | None:
    """The text of the agent's last step; None where that makes calls or says nothing."""
    return _conversation(steps).final_answer


def _conversation(steps: Iterable[TrajectoryStep]) -> Messages:
    return Messages(tuple(map(message_of, steps)))


def remarks_of(steps: Sequence[TrajectoryStep]) -> Counter[str]:
    """Counts of what can be seen in the steps themselves.

    A result without an id, in a step with calls, answers one of these that no other result names.
    """
    remarks: Counter[str] = Counter()
    odd = [step for step in steps if not _is_plain(step)]
    if not odd:
        return remarks
    answered = {result.call_id for step in steps for result in step.observations}
    known = {call.call_id for step in steps for call in step.calls}
    for step in odd:
        calls = step.calls
        remarks["parallel calls"] += len(calls) > 1
        remarks["user-side calls"] += len(calls) if step.source == "user" else 0
        remarks["unreadable arguments"] += sum(not isinstance(c.arguments, dict) for c in calls)
        unnamed = sum(not result.call_id for result in step.observations)
        open_calls = sum(not call.call_id or call.call_id not in answered for call in calls)
        remarks["calls without results"] += max(0, open_calls - unnamed)
        is_apart = step.source == "environment"
        remarks["results without calls"] += sum(
            result.call_id not in known if result.call_id else is_apart
            for result in step.observations
        )
    return +remarks


def _is_plain(step: TrajectoryStep) -> bool:
    """Whether there is nothing to remark: no call, or one of the agent with its answer."""
    calls, answers = step.calls, step.observations
    if not calls and not answers:
        return True
    if len(calls) != 1 or len(answers) != 1 or step.source != "agent":
        return False
    call = calls[0]
    is_answered = call.call_id != "" and call.call_id == answers[0].call_id
    return is_answered and isinstance(call.arguments, dict)
