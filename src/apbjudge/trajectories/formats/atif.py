"""ATIF 1.0 to 1.8, Harbor's format for trajectories (its RFC 0001).

ATIF states no outcome, no case, no trial and no reason why a run ended. What we write into it is
under ``extra.apbjudge`` of the trajectory, a step, a call or a result, in the form of our own rows,
and is read again. No other ``extra`` is taken for an outcome.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

from ...errors import RowError
from ...records.messages import Message, read_messages
from ...records.trajectories import LogPlace, Trajectory, trajectory_of
from . import LogFormat
from .derived import final_answer_of, query_of, remarks_of
from .fields import list_in, numbers_in, object_in, objects_in, text_in

OURS = "apbjudge"
"""Key of our own annotations in an ``extra``."""

UNKNOWN = "unknown"
"""What is written for an agent's name or version where nothing is known."""

_VERSION = re.compile(r"ATIF-v(1\.\d+)")
_SOURCES = ("system", "user", "agent")
_READ = frozenset(("schema_version", "trajectory_id", "agent", "steps", "extra"))
_READ_OF_AGENT = frozenset(("model_name", "tool_definitions"))
_READ_OF_STEP = frozenset(
    "step_id source message reasoning_content tool_calls observation is_copied_context "
    "extra".split()
)
_READ_OF_CALL = frozenset(("tool_call_id", "function_name", "arguments", "extra"))
_READ_OF_RESULT = frozenset(("source_call_id", "content", "extra"))


def _is_atif(entry: Mapping[str, Any]) -> bool:
    version = entry.get("schema_version")
    return isinstance(version, str) and version.startswith("ATIF-v")


def _read(entry: Mapping[str, Any], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    version = entry.get("schema_version")
    known = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if known is None:
        raise RowError("schema_version", "ATIF-v1.0 to ATIF-v1.8", version)
    own = _own(entry, "")
    remarks: Counter[str] = Counter()
    extra = _rest(entry, _READ)
    prompts: list[str] = []
    rows: list[dict[str, Any]] = []
    unknown: list[Any] = []
    for number, step in enumerate(list_in(entry, "steps", is_needed=True)):
        fields = cast("dict[str, Any]", step) if isinstance(step, dict) else {}
        if fields.get("source") not in _SOURCES:
            unknown.append(step)
            continue
        if fields.get("is_copied_context") is True:
            remarks["copied context"] += 1
            continue
        row = _step(fields, f"steps.{number}.", remarks, [] if own else [number])
        is_prompt = row["source"] == "system" and row.keys() <= {
            "source",
            "text",
            "extra",
            "sources",
        }
        if rows or not is_prompt or _own(fields, f"steps.{number}."):
            rows.append(row)
            continue
        prompts.append(row["text"])
        if row["extra"]:
            extra.setdefault("system_steps", []).append(row["extra"])
    _pair(() if own else rows)
    if unknown:
        remarks["unknown steps"] = len(unknown)
        extra["unknown_steps"] = unknown
    inside = len(list_in(entry, "subagent_trajectories"))
    remarks["sub-agents"] = max(remarks["sub-agents"], inside)
    if own:
        extra.pop("final_metrics", None)  # made of the usage, and nothing else

    agent = object_in(entry, "agent")
    name = agent.get("name")
    model = own.get("tested_model", agent.get("model_name") or (name if name != UNKNOWN else ""))
    about = _rest(agent, _READ_OF_AGENT, "agent.")
    about = {k: v for k, v in about.items() if v != UNKNOWN and (k, v) != ("name", model)}
    if about:
        extra["agent"] = about
    fallback = f"{Path(place.file).stem or 'run'}-{place.line}"
    own_id = entry.get("trajectory_id") or entry.get("session_id") or fallback
    tools = agent.get("tool_definitions")
    trajectory = trajectory_of(
        {
            "trajectory_id": own_id,
            "case_id": own_id,
            "tested_model": model or "",
            "system_prompt": "\n\n".join(prompts),
            "tools": None if tools is None else list_in(agent, "tool_definitions", "agent."),
            "usage": _usage(entry),
            **own,
            "extra": extra | object_in(own, "extra", f"extra.{OURS}."),
            "steps": rows,
            "place": asdict(replace(place, format="atif", version=known[1])),
        }
    )
    steps = trajectory.steps
    return replace(
        trajectory,
        query=trajectory.query if "query" in own else query_of(steps),
        final_answer=trajectory.final_answer if "final_answer" in own else final_answer_of(steps),
        remarks=trajectory.remarks if "remarks" in own else dict(+(remarks + remarks_of(steps))),
    )


def _step(
    step: Mapping[str, Any], where: str, remarks: Counter[str], sources: list[int]
) -> dict[str, Any]:
    """A step as a row of our own format."""
    if not isinstance(step.get("message"), str | list | None):
        raise RowError(f"{where}message", "text or a list of parts", step["message"])
    extra = _rest(step, _READ_OF_STEP, where)
    calls: list[dict[str, Any]] = []
    for number, call in objects_in(step, "tool_calls", where):
        at = f"{where}tool_calls.{number}."
        names = {
            "id": text_in(call, "tool_call_id", at),
            "name": text_in(call, "function_name", at),
        }
        calls.append({**names, "arguments": call.get("arguments")})
        if rest := _rest(call, _READ_OF_CALL, at):
            extra.setdefault("tool_calls", {})[str(number)] = rest
    plain = {"content": step.get("message"), "tool_calls": calls}
    thought = text_in(step, "reasoning_content", where)
    role = "assistant" if step["source"] == "agent" else "user"
    read = read_messages([{"role": role, "reasoning_content": thought, **plain}], where[:-1])
    remarks["attachments"] += read.remarks.get("attachments", 0)
    (message,) = read.messages
    row: dict[str, Any] = {"source": step["source"], "text": message.text, "sources": sources}
    row |= {"thought": thought} if thought else {}
    row |= {"calls": _calls(step, message, where), "kind": "call"} if calls else {}
    results: list[dict[str, Any]] = []
    observation = object_in(step, "observation", where)
    for number, result in objects_in(observation, "results", f"{where}observation."):
        answer, rest = _result(result, f"{where}observation.results.{number}.", remarks)
        results.append(answer)
        if rest:
            extra.setdefault("results", {})[str(number)] = rest
    row |= {"observations": results} if results else {}
    own = _own(step, where)
    extra |= message.extra | object_in(own, "extra", f"{where}extra.{OURS}.")
    return {**row, **own, "extra": extra}


def _calls(step: Mapping[str, Any], message: Message, where: str) -> list[dict[str, Any]]:
    places = enumerate(zip(message.calls, list_in(step, "tool_calls"), strict=True))
    return [asdict(of) | _own(raw, f"{where}tool_calls.{n}.") for n, (of, raw) in places]


def _result(
    result: Mapping[str, Any], where: str, remarks: Counter[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A result as a row of our own format, and the fields that this has no place for."""
    content: Any = result.get("content")
    rest = _rest(result, _READ_OF_RESULT, where)
    if isinstance(content, list):
        seen = read_messages([{"role": "tool", "content": content}], where[:-1])
        remarks["attachments"] += seen.remarks.get("attachments", 0)
        rest["content"], content = content, seen.messages[0].results[0].content
    remarks["sub-agents"] += len(list_in(result, "subagent_trajectory_ref", where))
    call_id = text_in(result, "source_call_id", where)
    return {"content": content, "call_id": call_id, **_own(result, where)}, rest


def _pair(rows: Sequence[dict[str, Any]]) -> None:
    """Results that name no call answer those of their step that no result of the log names."""
    named = {seen["call_id"] for row in rows for seen in row.get("observations", ())}
    for row in rows:
        waiting = deque(of["call_id"] for of in row.get("calls", ()) if of["call_id"] not in named)
        for seen in row.get("observations", ()):
            if waiting and not seen["call_id"]:
                seen["call_id"] = waiting.popleft()


def _usage(entry: Mapping[str, Any]) -> dict[str, float]:
    """The counts that the log states for the run, else the sums of those of its steps."""
    if entry.get("final_metrics") is not None:
        final = object_in(entry, "final_metrics")
        counts = {k: v for k, v in final.items() if k not in ("total_steps", "extra")}
        return numbers_in(object_in(final, "extra", "final_metrics.") | counts)
    sums: Counter[str] = Counter()
    for number, step in enumerate(list_in(entry, "steps")):
        fields = cast("dict[str, Any]", step) if isinstance(step, dict) else {}
        if fields.get("is_copied_context") is not True:
            metrics = object_in(fields, "metrics", f"steps.{number}.")
            sums.update({f"total_{name}": value for name, value in numbers_in(metrics).items()})
    return dict(sums)


# Fields -------------------------------------------------------------------------------------------


def _own(holder: Mapping[str, Any], where: str) -> dict[str, Any]:
    return object_in(object_in(holder, "extra", where), OURS, f"{where}extra.")


def _rest(holder: Mapping[str, Any], read: frozenset[str], where: str = "") -> dict[str, Any]:
    """What is not read otherwise, and the ``extra`` without what is ours."""
    rest = {name: value for name, value in holder.items() if name not in read and value is not None}
    foreign = {k: v for k, v in object_in(holder, "extra", where).items() if k != OURS}
    return rest | {"extra": foreign} if foreign else rest


ATIF = LogFormat(name="atif", title="ATIF", score=_is_atif, read=_read)
