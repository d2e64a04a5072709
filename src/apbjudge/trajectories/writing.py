"""Trajectories as rows of other formats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, cast

import orjson

from ..errors import RowError
from ..records.messages import openai_messages
from ..records.trajectories import ToolResult, Trajectory, TrajectoryStep, trajectory_row
from .formats.atif import OURS, UNKNOWN
from .formats.derived import final_answer_of, message_of, query_of

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
    """The run as a row with ``messages`` in the form of OpenAI's chat completions.

    Calls that a user makes stand in ``tool_calls`` of the user's message, as τ² has them; what the
    environment says without being asked is a message of a tool without ``tool_call_id``. Results
    that are values are written as JSON.

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


def _text(value: Any) -> str:
    try:
        return value if isinstance(value, str) else orjson.dumps(value).decode()
    except orjson.JSONEncodeError as error:
        raise RowError("steps", _WRITABLE, str(error)) from None


# ATIF ---------------------------------------------------------------------------------------------


def to_atif(trajectory: Trajectory) -> dict[str, Any]:
    """The run as a valid ATIF 1.8 trajectory.

    What ATIF has no field for is kept under ``extra.apbjudge`` of the trajectory, its steps, calls
    and results, where our reader finds it. Where the run was read is not written.

    Raises:
        RowError: As in ``to_messages``.
    """
    try:
        row = trajectory_row(trajectory)
    except ValueError as error:
        raise RowError("steps", _WRITABLE, str(error)) from None
    extra: dict[str, Any] = row.pop("extra", {})
    model = trajectory.tested_model
    agent = {"name": model or UNKNOWN, "version": UNKNOWN}
    if _is_agent(extra.get("agent"), model):
        agent |= extra.pop("agent")
    if model:
        agent["model_name"] = model
    tools: list[Any] | None = row.get("tools")
    if tools is not None and all(isinstance(tool, dict) for tool in tools):
        agent["tool_definitions"] = row.pop("tools")

    steps = [
        _atif_step(number, step)
        for number, step in enumerate(row["steps"], 2 if trajectory.system_prompt else 1)
    ]
    if trajectory.system_prompt or not steps:  # ATIF asks for at least one step
        first = {"step_id": 1, "source": "system", "message": trajectory.system_prompt}
        steps.insert(0, first)

    usage = trajectory.usage
    totals = {name: usage[name] for name in usage if _fits(usage[name], _TOTALS.get(name))}
    others = {name: value for name, value in usage.items() if name not in totals}

    own = {name: row[name] for name in row if name not in _WRITTEN}
    own["remarks"] = trajectory.remarks
    if not model:
        own["tested_model"] = ""
    if trajectory.query != query_of(trajectory.steps):
        own["query"] = trajectory.query
    if trajectory.final_answer != final_answer_of(trajectory.steps):
        own["final_answer"] = trajectory.final_answer
    if extra:
        own["extra"] = extra
    return {
        "schema_version": "ATIF-v1.8",
        "trajectory_id": trajectory.trajectory_id,
        "agent": agent,
        "steps": steps,
        "final_metrics": totals | ({"extra": others} if others else {}),
        "extra": {OURS: own},
    }


_WRITTEN = frozenset(
    "format trajectory_id tested_model system_prompt steps usage place query final_answer".split()
)


def _is_agent(about: object, model: str) -> bool:
    """Whether ATIF can hold what a log says of its agent, and our reader finds it there."""
    if not about or not isinstance(about, dict):
        return False
    fields = cast("dict[str, Any]", about)
    return (
        fields.keys() <= {"name", "version"}
        and all(isinstance(value, str) and value != UNKNOWN for value in fields.values())
        and fields.get("name") != model
    )


def _fits(value: Any, kind: type | tuple[type, ...] | None) -> bool:
    whole = isinstance(value, float) and value.is_integer() and kind is int
    return kind is not None and (isinstance(value, kind) or whole)


def _atif_step(number: int, row: dict[str, Any]) -> dict[str, Any]:
    """A step of ATIF, made of one of our own rows; what is left of the row is kept as ours."""
    own = dict(row)
    source = own.pop("source")
    step: dict[str, Any] = {
        "step_id": number,
        "source": "system" if source == "environment" else source,
        "message": own.pop("text", ""),
    }
    extra: dict[str, Any] = own.pop("extra", {})
    if _is_timestamp(extra.get("timestamp")):
        step["timestamp"] = extra.pop("timestamp")
    calls: list[dict[str, Any]] = []
    if source == "agent":
        calls = own.pop("calls", [])
        step |= _agent_only(number, own, extra, calls)
    elif source != "user":
        own["source"] = source  # else it might be taken for the system prompt
    ids = {call["call_id"] for call in calls if "call_id" in call}
    if results := own.pop("observations", []):
        step["observation"] = {"results": [_atif_result(result, ids) for result in results]}
    kind = own.pop("kind", "message")
    if kind != ("call" if calls else "message"):
        own["kind"] = kind
    if extra:
        own["extra"] = extra
    return step | _ours(own)


def _agent_only(
    number: int, own: dict[str, Any], extra: dict[str, Any], calls: list[dict[str, Any]]
) -> dict[str, Any]:
    """Fields that only steps of the agent may have; what is put there is taken out of the rest."""
    step: dict[str, Any] = {}
    if "thought" in own:
        step["reasoning_content"] = own.pop("thought")
    if isinstance(extra.get("model_name"), str):
        step["model_name"] = extra.pop("model_name")
    metrics = extra.get("metrics")
    if isinstance(metrics, dict) and all(
        _fits(value, _METRICS.get(name)) for name, value in cast("Any", metrics).items()
    ):
        step["metrics"] = extra.pop("metrics")
    if calls:
        step["tool_calls"] = [
            _atif_call(call, f"call-{number}-{place}") for place, call in enumerate(calls, 1)
        ]
    return step


def _atif_call(row: dict[str, Any], made_up_id: str) -> dict[str, Any]:
    own = dict(row)
    call_id = own.pop("call_id", "")
    arguments: Any = own.pop("arguments", None)
    call: dict[str, Any] = {
        "tool_call_id": call_id or made_up_id,
        "function_name": own.pop("name"),
        "arguments": arguments if isinstance(arguments, dict) else {},
    }
    if not isinstance(arguments, dict):
        own["arguments"] = arguments
    if not call_id:
        own["call_id"] = ""
    return call | _ours(own)


def _atif_result(row: dict[str, Any], ids: set[str]) -> dict[str, Any]:
    own = dict(row)
    result: dict[str, Any] = {}
    if own.get("call_id") in ids:
        result["source_call_id"] = own.pop("call_id")
    content = own.pop("content")
    result["content"] = content if content is None else _text(content)
    if not isinstance(content, str | None):
        own["content"] = content
    return result | _ours(own)


def _ours(own: dict[str, Any]) -> dict[str, Any]:
    return {"extra": {OURS: own}} if own else {}


def _is_timestamp(value: object) -> bool:
    try:
        datetime.fromisoformat(value.replace("Z", "+00:00") if isinstance(value, str) else "")
    except ValueError:
        return False
    return True


# What is lost -------------------------------------------------------------------------------------


def left_out(trajectory: Trajectory, target: Literal["messages", "atif"]) -> dict[str, int]:
    """Counts what a format has no field for.

    Args:
        trajectory: The run.
        target: ``messages``: it is not written. ``atif``: it is under ``extra.apbjudge``, which no
            other program reads.

    Returns:
        How often, by what it is; nothing that does not occur.
    """
    counts: Counter[str] = Counter()
    for step in trajectory.steps:
        calls, results = step.calls, step.observations
        is_environment = step.source == "environment"
        counts["retrieval facts"] += step.retrieval is not None
        counts["execution facts"] += step.execution is not None
        counts["kinds of steps"] += step.kind not in ("message", "call")
        counts["results as values"] += sum(not isinstance(r.content, str) for r in results)
        counts["marks of errors"] += sum(r.is_error is True for r in results)
        counts["words of errors"] += sum(bool(r.error) for r in results)
        if target == "messages":
            counts["reasoning"] += bool(step.thought)
            counts["calls of the environment"] += len(calls) if is_environment else 0
            counts["other fields of steps"] += len(step.extra)
        else:
            counts.update(_not_in_atif(step, results))
    if target == "messages":
        counts["other fields"] += len(trajectory.extra)
    else:
        counts["outcome"] += trajectory.outcome is not None
        counts["termination"] += bool(trajectory.termination)
        counts["infrastructure error"] += bool(trajectory.infrastructure_error)
        counts["case and trial"] += trajectory.trial is not None or trajectory.setting != ""
    return dict(+counts)


def _not_in_atif(step: TrajectoryStep, results: tuple[ToolResult, ...]) -> dict[str, int]:
    is_agent = step.source == "agent"
    ids = {call.call_id for call in step.calls} if is_agent else set[str]()
    return {
        "steps of the environment": int(step.source == "environment"),
        "user-side calls": 0 if is_agent else len(step.calls),
        "reasoning": int(bool(step.thought) and not is_agent),
        "unreadable arguments": sum(not isinstance(c.arguments, dict) for c in step.calls),
        "names of answering tools": sum(bool(r.name) for r in results),
        "results for calls of other steps": sum(
            bool(r.call_id) and r.call_id not in ids for r in results
        ),
    }
