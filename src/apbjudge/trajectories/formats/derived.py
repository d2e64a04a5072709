"""Facts derived from the steps of a trajectory, for logs of any format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...records.loose_json import check_depth
from ...records.messages import Message, Role, read_messages
from ...records.trajectories import LogPlace, StepSource, Trajectory, TrajectoryStep

_SOURCES: Mapping[Role, StepSource] = {
    "system": "system",
    "user": "user",
    "assistant": "agent",
    "tool": "environment",
}
_ROLES: Mapping[StepSource, Role] = {source: role for role, source in _SOURCES.items()}


def derived_id(case_id: str, trial: int | None, place: LogPlace) -> str:
    """The id of a trajectory without one in the log: its case with its trial or place."""
    base = case_id or Path(place.file).stem or "trajectory"
    if case_id and trial is not None:
        return f"{base}-{trial}"
    return f"{base}-{place.line}" if place.line else base


def trajectory_of_messages(
    raw: Iterable[tuple[int | Sequence[int], Any]],
    where: str,
    place: LogPlace,
    *,
    extra: Mapping[str, Any],
    remarks: Mapping[str, int | list[Any]] | None = None,
    case_id: str = "",
    trial: int | None = None,
    system_prompt: str = "",
    **facts: Any,
) -> Trajectory:
    """The trajectory of messages, with other facts in the log.

    Args:
        raw: Messages of any dialect, each with the position of its entry, or the positions of
            several.
        where: Name of their list, for errors.
        place: Place of the trajectory.
        extra: Fields of the log that have no place in a trajectory.
        remarks: Counts of occurrences in addition to those in the messages; or the entries that are
            left out under that remark, which go to ``extra`` under its name.
        case_id: The task; if the log names none, the id of the trajectory.
        trial: Number of the repetition.
        system_prompt: Instructions besides the messages.
        facts: Further fields of the trajectory. If None or empty, they are taken from the messages.

    Raises:
        RowError: If a message can't be read.
    """
    listed = list(raw)
    read = read_messages([message for _, message in listed], where)
    stated: dict[str, Any] = {name: of for name, of in facts.items() if of not in (None, "")}
    counted = {name: of for name, of in (remarks or {}).items() if of}
    all_extra = {**extra, **{name: of for name, of in counted.items() if isinstance(of, list)}}
    if read.unknown:
        all_extra["unknown_steps"] = read.unknown
    counts = Counter(read.remarks)
    counts.update({name: len(of) if isinstance(of, list) else of for name, of in counted.items()})
    check_depth("entry", (stated.get("tools"), stated.get("task"), all_extra))
    trajectory_id = stated.pop("trajectory_id", "") or derived_id(case_id, trial, place)
    stated = {"tested_model": read.model, "query": read.query} | stated
    stated.setdefault("final_answer", read.final_answer)
    return Trajectory(
        **stated,
        trajectory_id=trajectory_id,
        case_id=case_id or trajectory_id,
        trial=trial,
        system_prompt="\n\n".join(filter(None, (system_prompt, read.system_prompt))),
        steps=steps_of(read.messages, [(of,) if isinstance(of, int) else of for of, _ in listed]),
        place=place,
        remarks=dict(counts),
        extra=all_extra,
    )


def steps_of(
    messages: Iterable[Message], entries: Sequence[Sequence[int]] | None = None
) -> tuple[TrajectoryStep, ...]:
    """A step for each message; ``entries`` are the places of each raw message in the log."""
    return tuple(
        TrajectoryStep(
            _SOURCES[of.role],
            "call" if of.calls else "message",
            of.text,
            of.reasoning,
            of.calls,
            of.results,
            extra=of.extra,
            sources=of.entries
            if entries is None
            else tuple(sorted({at for n in of.entries for at in entries[n]})),
            speaker=of.speaker,
        )
        for of in messages
    )


def message_of(step: TrajectoryStep) -> Message:
    """The chat message of a step."""
    content = (step.text, step.thought, step.calls, step.observations)
    return Message(_ROLES[step.source], *content, speaker=step.speaker)
