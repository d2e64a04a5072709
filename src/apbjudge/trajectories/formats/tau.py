"""Results of tau-bench and of tau2-bench."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from ...errors import RowError
from ...records.trajectories import LogPlace, Outcome, Trajectory
from . import LogFormat
from .fields import list_in, object_in
from .messages import conversation, first_text, numbers_of

_READ = frozenset("task_id trial reward traj".split())
_READ2 = frozenset(
    "id task_id trial reward_info termination_reason messages agent_cost user_cost".split()
)
_USAGE = ("agent_cost", "user_cost", "duration")
_BROKE = "infrastructure"
"""Part of the reason why a run ended that is not the agent's."""


def _is_tau(entry: Mapping[str, Any]) -> bool:
    return {"task_id", "traj"} <= entry.keys()


def _read_tau(entry: Mapping[str, Any], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    task, trial = _task(entry), _whole(entry, "trial")
    info = object_in(entry, "info")
    reward = _number(entry.get("reward"), "reward")
    return replace(
        conversation(list_in(entry, "traj", is_needed=True)),
        trajectory_id=f"{task}-{0 if trial is None else trial}",
        case_id=task,
        trial=trial,
        tested_model=first_text(entry, ("tested_model", "model")),
        outcome=None if reward is None else Outcome(reward),
        usage=numbers_of({name: info.get(name) for name in ("agent_cost", "user_cost")}),
        place=replace(place, format="tau-bench"),
        extra={name: value for name, value in entry.items() if name not in _READ},
    )


def _task(entry: Mapping[str, Any]) -> str:
    task = first_text(entry, ("task_id",))
    if not task:
        raise RowError("task_id", "text or a whole number", entry.get("task_id"))
    return task


def _whole(entry: Mapping[str, Any], name: str) -> int | None:
    value = entry.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise RowError(name, "a whole number", value)
    return value


def _number(value: Any, name: str) -> float | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise RowError(name, "a number", value)
    return value


def _is_tau2(entry: Mapping[str, Any]) -> bool:
    return {"task_id", "messages"} <= entry.keys() and (
        "reward_info" in entry or "termination_reason" in entry
    )


def _read_tau2(entry: Mapping[str, Any], place: LogPlace, around: Mapping[str, Any]) -> Trajectory:
    task, trial = _task(entry), _whole(entry, "trial")
    info = object_in(around, "info")
    environment = object_in(info, "environment_info", "info.")
    agent = object_in(info, "agent_info", "info.")
    messages = list_in(entry, "messages", is_needed=True)
    run = conversation([chat for message in messages for chat in _as_chat(message)])
    end = first_text(entry, ("termination_reason",))
    graded = object_in(entry, "reward_info")
    reward = _number(graded.get("reward"), "reward_info.reward")
    return replace(
        run,
        trajectory_id=first_text(entry, ("id",)) or f"{task}-{0 if trial is None else trial}",
        case_id=task,
        trial=trial,
        tested_model=first_text(agent, ("llm", "implementation")),
        setting=first_text(environment, ("domain_name",)),
        termination=end,
        infrastructure_error=end if _BROKE in end else "",
        outcome=None if reward is None else Outcome(reward),
        usage=numbers_of({name: entry.get(name) for name in _USAGE}),
        place=replace(place, format="tau2"),
        extra={name: value for name, value in entry.items() if name not in _READ2},
    )


def _as_chat(message: Any) -> list[Any]:
    """A message as chat messages are: results name their call, and several stand apart."""
    if not isinstance(message, dict):
        return [message]
    row = cast("dict[str, Any]", message)
    if isinstance(row.get("tool_messages"), list):
        return [chat for each in cast("list[Any]", row["tool_messages"]) for chat in _as_chat(each)]
    if row.get("role") == "tool" and "tool_call_id" not in row:
        return [{**row, "tool_call_id": row.get("id")}]
    return [row]


TAU_BENCH = LogFormat(
    name="tau-bench", title="tau-bench results", recognises=_is_tau, read=_read_tau
)
TAU2 = LogFormat(
    name="tau2",
    title="tau2-bench results",
    recognises=_is_tau2,
    read=_read_tau2,
    member="simulations",
)
