"""ATIF 1.0 to 1.8, Harbor's format for trajectories (its RFC 0001).

ATIF has no outcome, case, trial or reason of a trajectory's end. Our further content is written
under ``extra.apbjudge``, as the differences from plain ATIF, and read again. No other ``extra`` is
taken for an outcome.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...errors import RowError
from ...records.loose_json import as_object, check_depth, rest_of
from ...records.messages import Message, Messages, Role, read_messages
from ...records.trajectories import LogPlace, Trajectory, trajectory_of, trajectory_row
from . import LogFormat
from .derived import derived_id, steps_of
from .fields import id_field, list_in, numbers_in, object_in, objects_in, text_field

OURS = "apbjudge"
"""Key of our content in the ``extra`` of a trajectory."""

UNKNOWN = "unknown"
"""Placeholder for an agent's unknown name or version."""

_VERSION = re.compile(r"ATIF-v(1\.\d+)")
_ROLES: Mapping[str, Role] = {"system": "system", "user": "user", "agent": "assistant"}
_READ = frozenset(("schema_version", "trajectory_id", "agent", "steps", "extra"))
_READ_OF_AGENT = frozenset(("model_name", "tool_definitions"))
_READ_OF_STEP = frozenset("step_id source message observation is_copied_context".split())


def _is_atif(entry: Mapping[str, Any]) -> bool:
    version = entry.get("schema_version")
    return isinstance(version, str) and version.startswith("ATIF-v")


def _read(entry: Mapping[str, Any], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    own = object_in(object_in(entry, "extra"), OURS, "extra.")
    trajectory = stated_trajectory(entry, place, is_ours=bool(own))
    if not own:
        return trajectory
    return trajectory_of(changed(trajectory_row(trajectory, with_defaults=True), own))


def stated_trajectory(entry: Mapping[str, Any], place: LogPlace, *, is_ours: bool) -> Trajectory:
    """The trajectory in plain ATIF, without our content.

    Args:
        entry: The trajectory.
        place: Where it was read.
        is_ours: True if we wrote it; its steps and metrics are then not stored as a log's.

    Raises:
        RowError: If a field has the wrong type.
    """
    version = entry.get("schema_version")
    known = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if known is None:
        raise RowError("schema_version", "ATIF-v1.0 to ATIF-v1.8", version)
    remarks: Counter[str] = Counter()
    foreign = {k: v for k, v in object_in(entry, "extra").items() if k != OURS}
    extra = rest_of(entry, _READ) | ({"extra": foreign} if foreign else {})
    prompts, system_extras = list[str](), list[dict[str, Any]]()
    messages: list[Message] = []
    unknown: list[Any] = []
    for number, value in enumerate(list_in(entry, "steps", is_needed=True)):
        step = as_object(value) or {}
        if str(step.get("source")) not in _ROLES:
            unknown.append(value)
        elif step.get("is_copied_context") is True:
            remarks["copied context"] += 1
        else:
            message = _message(step, number, remarks)
            if message.role == "system" and not (messages or message.results):
                prompts.append(message.text)
                system_extras.append(message.extra)
            else:
                messages.append(message if not is_ours else replace(message, entries=()))
    remarks["unknown steps"] = len(unknown)
    extra |= {"unknown_steps": unknown, "system_steps": list(filter(None, system_extras))}
    inside = len(list_in(entry, "subagent_trajectories"))
    remarks["sub-agents"] = max(remarks["sub-agents"], inside)
    agent = object_in(entry, "agent")
    name = text_field(agent, "name", where="agent.")
    model = text_field(agent, "model_name", where="agent.") or (name if name != UNKNOWN else "")
    about = rest_of(agent, _READ_OF_AGENT)
    extra["agent"] = {k: v for k, v in about.items() if v != UNKNOWN and (k, v) != ("name", model)}
    tools = None
    if agent.get("tool_definitions") is not None:
        tools = tuple(list_in(agent, "tool_definitions", "agent."))
    if is_ours:
        extra.pop("final_metrics", None)  # made of the usage only
    check_depth("entry", (tools, extra))
    trajectory_id = id_field(entry, "trajectory_id", "session_id") or derived_id("", None, place)
    conversation = Messages(tuple(messages))
    return Trajectory(
        trajectory_id=trajectory_id,
        case_id=trajectory_id,
        tested_model=model,
        query=conversation.query,
        system_prompt="\n\n".join(prompts),
        tools=tools,
        steps=steps_of(messages),
        final_answer=conversation.final_answer,
        usage=_usage(entry),
        place=replace(place, format="atif", version=known[1]),
        remarks=dict(+remarks),
        extra={name: of for name, of in extra.items() if of},
    )


def _message(step: Mapping[str, Any], number: int, remarks: Counter[str]) -> Message:
    """The message of a step, with all results in it."""
    where = f"steps.{number}"
    text: Any = step.get("message")
    if not isinstance(text, str | list | None):
        raise RowError(f"{where}.message", "text or a list of parts", text)
    role = _ROLES[str(step["source"])]
    observation = object_in(step, "observation", f"{where}.")
    results = [of for _, of in objects_in(observation, "results", f"{where}.observation.")]
    remarks["sub-agents"] += sum(
        len(list_in(of, "subagent_trajectory_ref", f"{where}.observation.results."))
        for of in results
    )
    raw: dict[str, Any] = {
        **rest_of(step, _READ_OF_STEP),
        "role": "assistant" if role == "assistant" else "user",
        "content": text,
    }
    results.sort(key=lambda of: not of.get("source_call_id"))  # the others answer remaining calls
    read = read_messages([raw, *({"role": "tool", **of} for of in results)], where)
    remarks.update(read.remarks)
    message, *unasked = read.messages
    extra = message.extra
    for of in unasked:
        extra.setdefault("results", []).extend(of.extra.get("results", ()))
    return replace(
        message,
        role=role,
        results=tuple(result for of in read.messages for result in of.results),
        entries=(number,),
        extra={name: of for name, of in extra.items() if of},
    )


def _usage(entry: Mapping[str, Any]) -> dict[str, float]:
    """The counts that the log states for the trajectory, else the sums of those of its steps."""
    if entry.get("final_metrics") is not None:
        final = object_in(entry, "final_metrics")
        counts = {k: v for k, v in final.items() if k not in ("total_steps", "extra")}
        return numbers_in(object_in(final, "extra", "final_metrics.") | counts)
    sums: Counter[str] = Counter()
    for number, value in enumerate(list_in(entry, "steps")):
        step = as_object(value) or {}
        if step.get("is_copied_context") is not True:
            metrics = object_in(step, "metrics", f"steps.{number}.")
            sums.update({f"total_{name}": value for name, value in numbers_in(metrics).items()})
    return dict(sums)


# Our content --------------------------------------------------------------------------------------

_LISTS = ("steps", "calls", "observations")


def differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of one whole row that differ in another one; in lists, by their place."""
    changes: dict[str, Any] = {}
    for name, value in ours.items():
        if value == (other := theirs[name]):
            continue
        changes[name] = value
        if name in _LISTS and len(value) == len(other):
            pairs = enumerate(zip(value, other, strict=True))
            changes[name] = {str(at): of for at, pair in pairs if (of := differences(*pair))}
    return changes


def changed(row: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The whole row that results from these differences."""
    new = {**row, **changes}
    for name in _LISTS:
        if (of_list := as_object(new.get(name))) is not None:
            places = enumerate(row[name])
            new[name] = [changed(of, as_object(of_list.get(str(at))) or {}) for at, of in places]
    return new


ATIF = LogFormat(name="atif", title="ATIF", score=_is_atif, read=_read)
