"""Run folders of the benchmark's environment: finished, or still at work."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import orjson
from pydantic import TypeAdapter, ValidationError

from ...errors import InputError, RowError, shorten
from ...jsonl import read_lines
from ...records.base import row_error
from ...records.trajectories import (
    Execution,
    FoundTool,
    LogPlace,
    Outcome,
    Provenance,
    Retrieval,
    StepKind,
    ToolCall,
    ToolResult,
    Trajectory,
    TrajectoryStep,
)
from ..base import LogEntry
from ..formats import LogFormat

FORMAT = "planbench-xl"
HTTP_400 = "runtime_error_http_400"
"""Why a run ended whose last request the model's endpoint refused, too long ones above all."""

_KINDS: Mapping[str, StepKind] = {
    "retrieve_tools": "retrieve",
    "call_tool": "call",
    "final_answer": "answer",
    "others": "invalid",
}
_HTTP_400 = re.compile(
    r"status(?:=| code )400|http 400|error code: 400|badrequesterror.*code['\"]: 400", re.DOTALL
)


# As the environment writes it ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Matched:
    input_information: tuple[str, ...] | None = None
    output_information: str | None = None


@dataclass(frozen=True, slots=True)
class _Listed:
    name: str
    input_datatypes: tuple[str, ...] = ()
    output_datatype: str = ""
    tool_type: str = ""
    description: str | None = None


@dataclass(frozen=True, slots=True)
class _RetrievalResult:
    tools: tuple[_Listed, ...] = ()


@dataclass(frozen=True, slots=True)
class _ToolResult:
    success: bool | None = None
    output_datatype: str = ""
    output_value: Any = None
    tool_type: str = ""
    output_provenance: Provenance | None = None


@dataclass(frozen=True, slots=True)
class _Entry:
    """One entry of a trace: one response of the model."""

    action: str
    step_id: int = 0
    parse_ok: bool = True
    raw_output: str = ""
    request: dict[str, Any] | None = None
    matched_information: _Matched | None = None
    retrieval_result: _RetrievalResult | None = None
    tool_result: _ToolResult | None = None
    internal_error_type: str | None = None
    blocked: bool = False
    answer: Any = None


@dataclass(frozen=True, slots=True)
class _Result:
    """One row of ``result.jsonl``."""

    query_id: str
    trace: tuple[_Entry, ...]
    stop_reason: str = ""
    status: str = ""
    final_answer: Any = None
    steps: int | None = None
    failure_reason_detail: str | None = None


@dataclass(frozen=True, slots=True)
class _Turn:
    turn_id: int = 0
    llm_raw_response: str | None = None
    feedback_to_model: str | None = None
    error: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    effective_history: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class _State:
    steps_trace: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class _Progress:
    """A file of ``progress/queries``; the parts of it that are read."""

    query_id: str = ""
    turns: tuple[_Turn, ...] = ()
    latest_state: _State = field(default_factory=_State)
    resume_checkpoint: _Checkpoint = field(default_factory=_Checkpoint)
    final_result: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _Metadata:
    model_name: str = ""
    config: dict[str, Any] = field(default_factory=dict[str, Any])


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


# Folders ------------------------------------------------------------------------------------------


def is_folder(path: Path) -> bool:
    """Whether this is a run folder of the environment."""
    return (path / "metadata.json").is_file() and (
        (path / "result.jsonl").is_file() or (path / "progress" / "queries").is_dir()
    )


def read_folder(path: Path) -> Iterator[LogEntry]:
    """Reads a run folder, one query at a time.

    Rows of ``result.jsonl`` come first, then what only ``progress/queries`` has. A query that is
    not finished is a run with an ``infrastructure_error``, which says that it is unfinished, or is
    left out where the model was never asked, so that it counts as missing. One that ended because
    the endpoint refused a request (HTTP 400) is a failed run, as for the authors' evaluator.
    The model's replies and the query's text are known where ``progress`` is there.

    Raises:
        InputError: If ``metadata.json`` can't be read.
    """
    metadata = _metadata(path / "metadata.json")
    progress = {file.stem: file for file in sorted((path / "progress" / "queries").glob("*.json"))}
    results = path / "result.jsonl"
    number = 0
    for line in read_lines(results) if results.is_file() else ():
        number += 1
        content, offset = line.values, line.offset + len(line.raw)
        if isinstance(content, RowError):
            yield LogEntry(line.number, offset, sha256(line.raw).digest(), content)
            continue
        file = progress.pop(str(content.get("query_id")), None)
        place = LogPlace(FORMAT, file=str(results), line=line.number)
        try:
            known = _Progress() if file is None else _progress(file)
            run: Trajectory | RowError = _trajectory(content, known, metadata, place)
        except RowError as error:
            run = error
        yield LogEntry(line.number, offset, _digest(content), run, raw=content)
    for file in progress.values():
        number += 1
        place = LogPlace(FORMAT, file=str(file))
        try:
            known = _progress(file)
            content, broke = _result_of(known)
            if not content["trace"] and broke:
                continue
            run = _trajectory(content, known, metadata, place, broke)
        except RowError as error:
            content, run = {"file": file.name}, error
        yield LogEntry(number, 0, _digest(content), run, raw=content)


def setting_of(config: Mapping[str, Any]) -> str:
    """The condition of a run in a few words, from the configuration that it was started with.

    ``default``, or which kinds of blockers stand in for blocked tools (``mixed`` for all three)
    and how much is blocked, unless it is the authors' standard of one remaining path: ``mixed,
    keep 0.2``. That ratio is the share of paths that *remain*; the paper's is what it takes away.
    """
    blocker: Mapping[str, Any] = config.get("blocker") or {}
    parts = ["default"]
    if blocker.get("enable_block"):
        kinds = blocker.get("fixed_noise_types") or [blocker.get("fixed_noise_type")]
        names = [
            str(kind).split()[-1 if "misleading" in str(kind) else 0] for kind in kinds if kind
        ]
        is_fixed = str(blocker.get("noise_mode")).startswith("fixed")
        parts = ["random" if not is_fixed else "mixed" if len(names) > 2 else "+".join(names)]
        mode = blocker.get("selection_mode") or "target_remaining_ratio"
        if mode == "target_remaining_ratio":
            parts.append(f"keep {blocker.get('target_remaining_ratio')}")
        elif mode == "exact_blocked_paths":
            parts.append(f"block {blocker.get('block_n_per_task')}")
        elif (paths := blocker.get("target_remaining_paths")) != 1:
            parts.append(f"{paths} paths")
        objective = str(blocker.get("remaining_path_length_objective") or "none")
        if objective != "none":
            parts.append({"maximize": "longest", "minimize": "shortest"}.get(objective, objective))
    runtime: Mapping[str, Any] = config.get("runtime") or {}
    if runtime.get("enable_incorrect_final_answer_feedback"):
        parts.append("feedback")
    return ", ".join(parts)


def _metadata(file: Path) -> _Metadata:
    try:
        return _adapter(_Metadata).validate_python(orjson.loads(file.read_bytes()))
    except OSError as error:
        raise InputError(f"{file}: can't be read: {error.strerror}") from None
    except orjson.JSONDecodeError as error:
        raise InputError(f"{file}: expected JSON: {error}") from None
    except ValidationError as error:
        raise InputError(f"{file}: {row_error(error)}") from None


def _progress(file: Path) -> _Progress:
    where = f"progress/queries/{file.name}"
    try:
        return _adapter(_Progress).validate_python(orjson.loads(file.read_bytes()))
    except OSError as error:
        raise RowError(where, "a file that can be read", error.strerror) from None
    except orjson.JSONDecodeError as error:
        raise RowError(where, "JSON", str(error)) from None
    except ValidationError as error:
        raise row_error(error) from None


def _result_of(progress: _Progress) -> tuple[dict[str, Any], str]:
    """The result of a query, or the run so far and what broke it."""
    if progress.final_result is not None:
        return {"trace": (), **progress.final_result}, ""
    messages = [str(turn.error["message"]) for turn in progress.turns if turn.error]
    row = {"query_id": progress.query_id, "trace": progress.latest_state.steps_trace}
    if messages and _HTTP_400.search(messages[-1].lower()):
        return {**row, "status": "failed", "stop_reason": HTTP_400}, ""
    broke = f"unfinished after {len(progress.latest_state.steps_trace)} turns"
    return row, f"{broke}: {shorten(messages[-1])}" if messages else broke


def _digest(content: Mapping[str, Any]) -> bytes:
    return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).digest()


# Runs ---------------------------------------------------------------------------------------------


def _trajectory(
    content: Mapping[str, Any],
    progress: _Progress,
    metadata: _Metadata,
    place: LogPlace,
    broke: str = "",
) -> Trajectory:
    try:
        result = cast("_Result", _adapter(_Result).validate_python(content))
    except ValidationError as error:
        raise row_error(error) from None
    if result.steps not in {None, len(result.trace)}:
        expected = f"{len(result.trace)}, the number of entries of the trace"
        raise RowError("steps", expected, result.steps)
    turns = {turn.turn_id: turn for turn in progress.turns}
    callable_names: set[str] = set()
    steps: list[TrajectoryStep] = []
    for i, entry in enumerate(result.trace):
        if entry.action not in _KINDS:
            raise RowError(f"trace.{i}.action", f"one of {', '.join(_KINDS)}", entry.action)
        steps.append(_step(entry, turns.get(entry.step_id, _Turn()), callable_names))
        if entry.retrieval_result is not None:
            callable_names.update(tool.name for tool in entry.retrieval_result.tools)
    said = {
        str(message.get("role")): str(message.get("content"))
        for message in reversed(progress.resume_checkpoint.effective_history[:2])
    }
    unreadable = sum(bool(call.parse_error) for step in steps for call in step.calls)
    return Trajectory(
        trajectory_id=result.query_id,
        case_id=result.query_id,
        tested_model=metadata.model_name,
        setting=setting_of(metadata.config) if metadata.config else "",
        query=said.get("user", ""),
        system_prompt=said.get("system", ""),
        steps=tuple(steps),
        final_answer=None if result.final_answer is None else str(result.final_answer),
        termination=result.failure_reason_detail or result.stop_reason,
        infrastructure_error=broke,
        outcome=Outcome(success=result.status == "success") if result.status else None,
        place=place,
        remarks={"unreadable arguments": unreadable} if unreadable else {},
    )


def _step(entry: _Entry, turn: _Turn, callable_names: set[str]) -> TrajectoryStep:
    text = turn.llm_raw_response or entry.raw_output
    feedback = turn.feedback_to_model
    notes = (ToolResult(feedback),) if feedback else ()
    kind = _KINDS[entry.action]
    if kind == "retrieve":
        asked = {"request": entry.request} if entry.request else {}
        return TrajectoryStep("agent", kind, text, retrieval=_retrieval(entry), extra=asked)
    if kind == "call":
        call, execution = _call(entry, callable_names)
        if entry.tool_result is not None:
            failed = None if execution.success is None else not execution.success
            notes = (ToolResult(execution.output_value, name=call.name, is_error=failed),)
        elif notes:
            notes = (ToolResult(feedback, name=call.name, is_error=True),)
        return TrajectoryStep(
            "agent", kind, text, calls=(call,), observations=notes, execution=execution
        )
    if kind == "answer":
        text = text or ("" if entry.answer is None else str(entry.answer))
    return TrajectoryStep("agent", kind, text, observations=notes)


def _retrieval(entry: _Entry) -> Retrieval:
    meta_tool = str((entry.request or {}).get("meta_tool")).strip()
    matched = entry.matched_information or _Matched()
    found = entry.retrieval_result
    return Retrieval(
        by_inputs=meta_tool in {"by_inputs", "by_io_info"},
        by_output=meta_tool in {"by_output_info", "by_io_info"},
        inputs=matched.input_information or (),
        outputs=(matched.output_information,) if matched.output_information else (),
        tools=None
        if found is None
        else tuple(
            FoundTool(
                *(tool.name, tool.input_datatypes, tool.output_datatype, tool.tool_type),
                description=tool.description or "",
            )
            for tool in found.tools
        ),
    )


def _call(entry: _Entry, callable_names: set[str]) -> tuple[ToolCall, Execution]:
    """A call and what came of it.

    The environment does not say which check a rejected call failed unless it was the inputs; the
    other two are told apart here by what the run had retrieved.
    """
    request = entry.request or {}
    name = request.get("name") or request.get("tool_id") or ""
    if not entry.parse_ok:
        return ToolCall("", parse_error="no JSON object with a name and arguments"), Execution()
    call = ToolCall(str(name), request.get("arguments"))
    result = entry.tool_result
    if result is None:
        if entry.blocked:
            rejection = "blocked"
        elif entry.internal_error_type:
            rejection = entry.internal_error_type
        else:
            is_known = call.name in callable_names
            rejection = "wrong_arguments" if is_known else "tool_not_available"
        return call, Execution(rejection=rejection)
    provenance = result.output_provenance
    if provenance is None:  # as older versions write it
        provenance = "none" if result.output_value is None else "trusted"
    return call, Execution(
        was_executed=True,
        success=result.success,
        output_datatype=result.output_datatype,
        output_value=result.output_value,
        provenance=provenance,
        tool_type=result.tool_type,
    )


def _recognises(entry: Mapping[str, Any]) -> bool:
    return {"query_id", "trace", "stop_reason"} <= entry.keys()


def _read(entry: Mapping[str, Any], place: LogPlace, around: Mapping[str, Any]) -> Trajectory:
    """A row of a ``result.jsonl`` alone: neither model nor setting is known."""
    del around
    return _trajectory(entry, _Progress(), _Metadata(), place)


PLANBENCH_RESULT = LogFormat(
    name=FORMAT, title="PlanBench-XL results", score=_recognises, read=_read
)
"""Rows of a ``result.jsonl`` that is not in its run folder."""
