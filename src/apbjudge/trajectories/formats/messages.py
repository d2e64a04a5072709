"""Runs as chat messages: OpenAI chat and Responses, Anthropic, also mixed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from ...errors import RowError
from ...records.loose_json import as_list, as_object, check_depth, rest_of
from ...records.messages import is_message, read_messages
from ...records.trajectories import LogPlace, Outcome, Trajectory
from . import LogFormat
from .derived import steps_of
from .fields import (
    first_of,
    id_field,
    number_field,
    numbers_in,
    success_of,
    text_field,
    whole_field,
)

_LISTS = ("messages", "input", "items", "traj", "conversation", "trajectory")
_SYSTEMS = ("system", "system_prompt", "instructions")
_GROUPS = (
    *(_LISTS, _SYSTEMS, ("trajectory_id", "id"), ("case_id", "task_id"), ("tested_model", "model")),
    *(("tools", "functions"), ("termination", "stop_reason"), ("trial",), ("setting",)),
    *(("final_answer",), ("reward",), ("success",), ("outcome",), ("usage",)),
)
"""Names of a field, of which the first that holds something is read."""

_USUAL = frozenset(
    "messages id case_id model trial setting tools system reward success outcome".split()
)
"""Names of different fields."""


def derived_id(case_id: str, trial: int | None, place: LogPlace) -> str:
    """The id of a run whose log gives it none: its case with its trial, or with its place."""
    base = case_id or Path(place.file).stem or "run"
    if case_id and trial is not None:
        return f"{base}-{trial}"
    return f"{base}-{place.line}" if place.line else base


def _messages_of(entry: Mapping[str, Any]) -> tuple[str, Any]:
    """The field with the messages, and these; Responses logs have input and output apart."""
    name, value = first_of(entry, *_LISTS)
    output = as_list(entry.get("output")) if name == "input" else None
    if name == "input" and isinstance(value, str):
        value = [{"role": "user", "content": value}]
    return name, value if output is None or not isinstance(value, list) else [*value, *output]


def _is_messages(entry: Mapping[str, Any]) -> bool:
    messages = as_list(_messages_of(entry)[1])
    return bool(messages) and is_message(messages[0])


def _read(entry: Mapping[str, Any], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    name, value = _messages_of(entry)
    messages = as_list(value)
    if not messages:
        raise RowError(name, "a list of messages", value)
    conversation = read_messages(messages, name)
    case_id, trial = id_field(entry, "case_id", "task_id"), whole_field(entry, "trial")
    trajectory_id = id_field(entry, "trajectory_id", "id") or derived_id(case_id, trial, place)
    extra = _extra(entry, name)
    if conversation.unknown:
        extra["unknown_steps"] = conversation.unknown
    outcome, tools = _outcome(entry, extra), _tools(entry)
    check_depth("entry", (tools, extra))
    return Trajectory(
        trajectory_id=trajectory_id,
        case_id=case_id or trajectory_id,
        tested_model=text_field(entry, "tested_model", "model"),
        trial=trial,
        setting=text_field(entry, "setting"),
        query=conversation.query,
        system_prompt="\n\n".join(filter(None, (_system(entry), conversation.system_prompt))),
        tools=tools,
        steps=steps_of(conversation.messages),
        final_answer=text_field(entry, "final_answer") or conversation.final_answer,
        termination=text_field(entry, "termination", "stop_reason"),
        outcome=outcome,
        usage=numbers_in(as_object(entry.get("usage")) or {}),
        place=place,
        remarks=conversation.remarks,
        extra=extra,
    )


def _extra(entry: Mapping[str, Any], messages: str) -> dict[str, Any]:
    """The fields that are not read; ``messages`` is the name of the list that is."""
    if entry.keys() <= _USUAL:
        return {}
    known = {first_of(entry, *names)[0] for names in _GROUPS}
    if messages == "input" and as_list(entry.get("output")) is not None:
        known.add("output")
    if as_object(entry.get("usage")) is None:
        known.discard("usage")
    return rest_of(entry, known)


def _system(entry: Mapping[str, Any]) -> str:
    """Instructions beside the messages, as text or as Anthropic's list of text blocks."""
    name, value = first_of(entry, *_SYSTEMS)
    blocks = as_list(value)
    if blocks is None:
        return text_field(entry, name)
    texts = [(as_object(block) or {}).get("text") for block in blocks]
    if not all(isinstance(text, str) for text in texts):
        raise RowError(name, "text or a list of texts", value)
    return "\n".join(map(str, texts))


def _tools(entry: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Definitions of the tools, which tables hold as JSON text."""
    name, value = first_of(entry, "tools", "functions")
    tools: object = value
    if isinstance(value, str):
        try:
            tools = orjson.loads(value)
        except orjson.JSONDecodeError:
            tools = None
    if value is None:
        return None
    if (listed := as_list(tools)) is None:
        raise RowError(name, "a list of tools", value)
    return tuple(listed)


def _outcome(entry: Mapping[str, Any], extra: dict[str, Any]) -> Outcome | None:
    """Reward and success as stated; an outcome in words says neither, and goes to ``extra``."""
    stated: dict[str, Any] = {"reward": entry.get("reward"), "success": entry.get("success")}
    outcome = entry.get("outcome")
    if (inner := as_object(outcome)) is not None:
        stated = {**inner, **{name: value for name, value in stated.items() if value is not None}}
        if not inner.keys() <= {"reward", "success"}:
            extra["outcome"] = inner
    elif isinstance(outcome, str):
        extra["outcome"] = outcome
    elif isinstance(outcome, bool):
        stated["success"] = outcome if stated["success"] is None else stated["success"]
    elif outcome is not None:
        stated["reward"] = outcome if stated["reward"] is None else stated["reward"]
    return outcome_of(stated)


def outcome_of(stated: Mapping[str, Any]) -> Outcome | None:
    """The outcome with the reward and the success that are stated; None without either.

    Raises:
        RowError: If the reward is no number or the success neither true nor false.
    """
    success, reward = success_of(stated.get("success")), number_field(stated, "reward")
    return None if reward is None and success is None else Outcome(reward, success)


MESSAGES = LogFormat(name="messages", title="chat messages", recognises=_is_messages, read=_read)
