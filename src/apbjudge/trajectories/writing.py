"""Trajectories as rows of other formats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from ..errors import RowError
from ..records.loose_json import as_object, json_text
from ..records.messages import openai_messages
from ..records.trajectories import Trajectory, TrajectoryStep, trajectory_row
from .formats.atif import OURS, UNKNOWN, differences, stated_trajectory
from .formats.derived import message_of

_METRICS: Mapping[str, type | tuple[type, ...]] = {
    "prompt_tokens": int,
    "completion_tokens": int,
    "cached_tokens": int,
    "cost_usd": (int, float),
    "prompt_token_ids": list,
    "completion_token_ids": list,
    "logprobs": list,
    "extra": dict,
}
_TOTALS: Mapping[str, type | tuple[type, ...]] = {
    "total_prompt_tokens": int,
    "total_completion_tokens": int,
    "total_cached_tokens": int,
    "total_cost_usd": (int, float),
}
_WRITABLE = "values that can be written as JSON"


# Messages -----------------------------------------------------------------------------------------


def to_messages(trajectory: Trajectory) -> dict[str, Any]:
    """The trajectory as a row with ``messages`` in the form of OpenAI's chat completions.

    Calls by a user are in ``tool_calls`` of the user's message, as in τ²; unprompted output of the
    environment is a tool's message without ``tool_call_id``. Results that are values are written as
    JSON.

    Raises:
        RowError: If a value is nested too deeply (about 250 levels) for JSON to be written.
    """
    messages: list[dict[str, Any]] = []
    if trajectory.system_prompt:
        messages.append({"role": "system", "content": trajectory.system_prompt})
    for step in trajectory.steps:
        messages.extend(openai_messages(message_of(step), "steps"))
    outcome = trajectory.outcome
    facts = {
        "trial": trajectory.trial,
        "setting": trajectory.setting,
        "reward": outcome and outcome.reward,
        "success": outcome and outcome.success,
        "scores": trajectory.scores or None,
        "termination": trajectory.termination,
        "infrastructure_error": trajectory.infrastructure_error,
        "usage": trajectory.usage or None,
        "tools": None if trajectory.tools is None else list(trajectory.tools),
    }
    return {
        "id": trajectory.trajectory_id,
        "case_id": trajectory.case_id,
        "tested_model": trajectory.tested_model,
        **{name: value for name, value in facts.items() if value is not None and value != ""},
        "messages": messages,
    }


# ATIF ---------------------------------------------------------------------------------------------


def to_atif(trajectory: Trajectory) -> dict[str, Any]:
    """The trajectory as a valid ATIF 1.8 trajectory.

    Content without a field in ATIF is stored under ``extra.apbjudge``, where our reader finds it.
    The place of the trajectory is not written.

    Raises:
        RowError: As in ``to_messages``.
    """
    model, extra, usage = trajectory.tested_model, trajectory.extra, trajectory.usage
    agent: dict[str, Any] = {"name": model or UNKNOWN, "version": UNKNOWN}
    about = as_object(extra.get("agent")) or {}
    agent |= {name: about[name] for name in agent if isinstance(about.get(name), str)}
    if model:
        agent["model_name"] = model
    tools = trajectory.tools
    if tools is not None and all(isinstance(tool, dict) for tool in tools):
        agent["tool_definitions"] = list(tools)
    steps: list[dict[str, Any]] = []
    if trajectory.system_prompt or not trajectory.steps:  # ATIF requires at least one step
        steps.append({"step_id": 1, "source": "system", "message": trajectory.system_prompt})
    for step in trajectory.steps:
        steps.append(_atif_step(len(steps) + 1, step))
    totals = {name: usage[name] for name in usage if _fits(usage[name], _TOTALS.get(name))}
    others = {name: value for name, value in usage.items() if name not in totals}
    row: dict[str, Any] = {
        "schema_version": "ATIF-v1.8",
        "trajectory_id": trajectory.trajectory_id,
        "agent": agent,
        "steps": steps,
        "final_metrics": totals | ({"extra": others} if others else {}),
    }
    try:
        whole = trajectory_row(trajectory, with_defaults=True)
        read_back = stated_trajectory(row, trajectory.place, is_ours=True)
        stated = trajectory_row(read_back, with_defaults=True)
    except ValueError as error:
        raise RowError("steps", _WRITABLE, str(error)) from None
    del whole["place"]
    return {**row, "extra": {OURS: {"case_id": trajectory.case_id, **differences(whole, stated)}}}


def _atif_step(number: int, step: TrajectoryStep) -> dict[str, Any]:
    source = "system" if step.source == "environment" else step.source
    row: dict[str, Any] = {"step_id": number, "source": source, "message": step.text}
    extra = step.extra
    if _is_timestamp(extra.get("timestamp")):
        row["timestamp"] = extra["timestamp"]
    ids: set[str] = set()
    if source == "agent":  # no other step may have these fields
        if step.thought:
            row["reasoning_content"] = step.thought
        if isinstance(extra.get("model_name"), str):
            row["model_name"] = extra["model_name"]
        metrics = as_object(extra.get("metrics"))
        if metrics and all(_fits(of, _METRICS.get(name)) for name, of in metrics.items()):
            row["metrics"] = metrics
        if step.calls:
            row["tool_calls"] = [
                {
                    "tool_call_id": call.call_id or f"call-{number}-{place}",
                    "function_name": call.name,
                    "arguments": as_object(call.arguments) or {},
                }
                for place, call in enumerate(step.calls, 1)
            ]
            ids = {call.call_id for call in step.calls} - {""}
    if step.observations:
        row["observation"] = {
            "results": [
                {
                    **({"source_call_id": of.call_id} if of.call_id in ids else {}),
                    "content": None if of.content is None else json_text(of.content, "steps"),
                }
                for of in step.observations
            ]
        }
    return row


def _fits(value: Any, kind: type | tuple[type, ...] | None) -> bool:
    whole = isinstance(value, float) and value.is_integer() and kind is int
    return kind is not None and (isinstance(value, kind) or whole)


def _is_timestamp(value: object) -> bool:
    try:
        datetime.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        return False
    return True


# Losses -------------------------------------------------------------------------------------------


def left_out(trajectory: Trajectory, target: Literal["messages", "atif"]) -> dict[str, int]:
    """Counts the content that a format has no field for.

    Args:
        trajectory: The trajectory.
        target: ``messages``, which lacks that content, or ``atif``, which has it under
            ``extra.apbjudge``, where only we read it.

    Returns:
        The numbers of occurrences by kind, without zeros.
    """
    counts: Counter[str] = Counter()
    for step in trajectory.steps:
        calls, results = step.calls, step.observations
        is_agent, is_environment = step.source == "agent", step.source == "environment"
        counts["retrieval facts"] += step.retrieval is not None
        counts["execution facts"] += step.execution is not None
        counts["kinds of steps"] += step.kind not in ("message", "call")
        counts["results as values"] += sum(not isinstance(r.content, str) for r in results)
        counts["marks of errors"] += sum(r.is_error is True for r in results)
        counts["words of errors"] += sum(bool(r.error) for r in results)
        counts["reasoning"] += bool(step.thought) and (target == "messages" or not is_agent)
        if target == "messages":
            counts["calls of the environment"] += len(calls) if is_environment else 0
            counts["other fields of steps"] += len(step.extra)
            continue
        ids = {call.call_id for call in calls} if is_agent else set[str]()
        others = [r for r in results if r.call_id and r.call_id not in ids]
        counts["steps of the environment"] += is_environment
        counts["user-side calls"] += 0 if is_agent else len(calls)
        counts["unreadable arguments"] += sum(not isinstance(c.arguments, dict) for c in calls)
        counts["names of answering tools"] += sum(bool(r.name) for r in results)
        counts["results for calls of other steps"] += len(others)
    if target == "messages":
        counts["other fields"] += len(trajectory.extra)
    else:
        counts["outcome"] += trajectory.outcome is not None
        counts["scores"] += len(trajectory.scores)
        counts["termination"] += bool(trajectory.termination)
        counts["infrastructure error"] += bool(trajectory.infrastructure_error)
        counts["case and trial"] += trajectory.trial is not None or trajectory.setting != ""
    return dict(+counts)
