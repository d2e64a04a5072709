"""Run folders of the benchmark's environment: finished, or still in progress."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, cast, get_args

import orjson

from ...errors import InputError, RowError, shorten
from ...jsonl import read_lines
from ...records.json_stream import read_object
from ...records.trajectories import (
    Execution,
    LogPlace,
    Outcome,
    Provenance,
    Retrieval,
    RetrievedTool,
    StepKind,
    ToolCall,
    ToolResult,
    Trajectory,
    TrajectoryStep,
)
from ..base import LogEntry
from ..formats import LogFormat
from ..formats.fields import id_field, list_in, object_in, objects_in, text_field, whole_field

FORMAT = "planbench-xl"
HTTP_400 = "runtime_error_http_400"
"""Termination if the endpoint refused the last request, such as one that is too long."""

_KINDS: Mapping[str, StepKind] = {
    "retrieve_tools": "retrieve",
    "call_tool": "call",
    "final_answer": "answer",
    "others": "invalid",
}
_HTTP_400 = re.compile(
    r"status(?:=| code )400|http 400|error code: 400|badrequesterror.*code['\"]: 400", re.DOTALL
)


# Folders ------------------------------------------------------------------------------------------


def is_folder(path: Path) -> bool:
    """True if the path is a run folder of the environment."""
    return (path / "metadata.json").is_file() and (
        (path / "result.jsonl").is_file() or (path / "progress" / "queries").is_dir()
    )


def read_folder(path: Path) -> Iterator[LogEntry]:
    """Reads a run folder, one query at a time.

    Rows of ``result.jsonl`` come first, then queries that only ``progress/queries`` has. An
    unfinished query is a trajectory with an ``infrastructure_error``, which states that it is
    unfinished; if the model was never asked, it is left out and so counts as missing. A query that
    ended because the endpoint refused a request (HTTP 400) is a failed trajectory, as for the
    authors' evaluator. The model's replies and the query's text are known if ``progress`` exists.

    Raises:
        InputError: If ``metadata.json`` can't be read.
    """
    try:
        metadata, _ = read_object(path / "metadata.json")
    except RowError as error:
        raise InputError(f"{path}: {error}") from None
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
            known = {} if file is None else _progress(file)
            trajectory: Trajectory | RowError = _trajectory(content, known, metadata, place)
        except RowError as error:
            trajectory = error
        yield LogEntry(line.number, offset, _digest(content), trajectory, raw=content)
    for file in progress.values():
        number += 1
        place = LogPlace(FORMAT, file=str(file))
        try:
            known = _progress(file)
            content, broke = _result_of(known)
            if not content["trace"] and broke:
                continue
            trajectory = _trajectory(content, known, metadata, place, broke)
        except RowError as error:
            content, trajectory = {"file": file.name}, error
        yield LogEntry(number, 0, _digest(content), trajectory, raw=content)


def setting_of(config: Mapping[str, Any]) -> str:
    """The condition in a few words, from the environment's initial configuration.

    ``default``, or the kinds of blockers that replace blocked tools (``mixed`` for all three) and
    the amount of blocking, unless it is the authors' standard of one remaining path: ``mixed, keep
    0.2``. That ratio is the share of paths that *remain*; the paper's is the share removed.
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


def _progress(file: Path) -> dict[str, Any]:
    try:
        return read_object(file)[0]
    except RowError as error:
        raise RowError(f"progress/queries/{file.name}", error.expected, error.got) from None


def _result_of(progress: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The result of a query, or the trajectory so far and the reason why it broke."""
    if final := object_in(progress, "final_result"):
        return {"trace": [], **final}, ""
    errors = [object_in(turn, "error") for _, turn in objects_in(progress, "turns")]
    messages = [str(of.get("message")) for of in errors if of]
    trace = list_in(object_in(progress, "latest_state"), "steps_trace")
    row = {"query_id": progress.get("query_id"), "trace": trace}
    if messages and _HTTP_400.search(messages[-1].lower()):
        return {**row, "status": "failed", "stop_reason": HTTP_400}, ""
    broke = f"unfinished after {len(trace)} turns"
    return row, f"{broke}: {shorten(messages[-1])}" if messages else broke


def _digest(content: Mapping[str, Any]) -> bytes:
    return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).digest()


# Trajectories -------------------------------------------------------------------------------------


def _trajectory(
    result: Mapping[str, Any],
    progress: Mapping[str, Any],
    metadata: Mapping[str, Any],
    place: LogPlace,
    broke: str = "",
) -> Trajectory:
    if not (query_id := id_field(result, "query_id")):
        raise RowError("query_id", "text", None)
    trace = [entry for _, entry in objects_in(result, "trace", is_needed=True)]
    n = whole_field(result, "steps")
    if n not in {None, len(trace)}:
        raise RowError("steps", f"{len(trace)}, the number of entries of the trace", n)
    turns = {whole_field(turn, "turn_id") or 0: turn for _, turn in objects_in(progress, "turns")}
    callable_names: set[str] = set()
    steps: list[TrajectoryStep] = []
    for i, entry in enumerate(trace):
        turn = turns.get(whole_field(entry, "step_id") or 0, {})
        step = _step(entry, f"trace.{i}.", turn, callable_names)
        steps.append(step)
        if step.retrieval is not None:
            callable_names.update(tool.name for tool in step.retrieval.tools or ())
    checkpoint = object_in(progress, "resume_checkpoint")
    history = [of for _, of in objects_in(checkpoint, "effective_history")]
    said = {str(of.get("role")): str(of.get("content")) for of in reversed(history[:2])}
    unreadable = sum(bool(call.parse_error) for step in steps for call in step.calls)
    config, answer = object_in(metadata, "config"), result.get("final_answer")
    status, reason = text_field(result, "status"), text_field(result, "failure_reason_detail")
    return Trajectory(
        trajectory_id=query_id,
        case_id=query_id,
        tested_model=text_field(metadata, "model_name"),
        setting=setting_of(config) if config else "",
        query=said.get("user", ""),
        system_prompt=said.get("system", ""),
        steps=tuple(steps),
        final_answer=None if answer is None else str(answer),
        termination=reason or text_field(result, "stop_reason"),
        infrastructure_error=broke,
        outcome=Outcome(success=status == "success") if status else None,
        place=place,
        remarks={"unreadable arguments": unreadable} if unreadable else {},
    )


def _step(
    entry: Mapping[str, Any], where: str, turn: Mapping[str, Any], callable_names: set[str]
) -> TrajectoryStep:
    """The step for an entry of a trace, which is one response of the model."""
    if (kind := _KINDS.get(str(entry.get("action")))) is None:
        raise RowError(f"{where}action", f"one of {', '.join(_KINDS)}", entry.get("action"))
    text = text_field(turn, "llm_raw_response") or text_field(entry, "raw_output", where=where)
    feedback = text_field(turn, "feedback_to_model")
    notes = (ToolResult(feedback),) if feedback else ()
    if kind == "retrieve":
        retrieval = _retrieval(entry, where)
        asked = {"request": entry["request"]} if entry.get("request") else {}
        return TrajectoryStep("agent", kind, text, retrieval=retrieval, extra=asked)
    if kind == "call":
        call, execution = _call(entry, where, callable_names)
        if execution.was_executed:
            failed = None if execution.success is None else not execution.success
            notes = (ToolResult(execution.output_value, name=call.name, is_error=failed),)
        elif notes:
            notes = (ToolResult(feedback, name=call.name, is_error=True),)
        return TrajectoryStep(
            "agent", kind, text, calls=(call,), observations=notes, execution=execution
        )
    if kind == "answer":
        text = text or ("" if entry.get("answer") is None else str(entry["answer"]))
    return TrajectoryStep("agent", kind, text, observations=notes)


def _retrieval(entry: Mapping[str, Any], where: str) -> Retrieval:
    meta_tool = str(object_in(entry, "request", where).get("meta_tool")).strip()
    matched = object_in(entry, "matched_information", where)
    output = text_field(matched, "output_information", where=f"{where}matched_information.")
    found, tools = object_in(entry, "retrieval_result", where), f"{where}retrieval_result.tools."
    return Retrieval(
        by_inputs=meta_tool in {"by_inputs", "by_io_info"},
        by_output=meta_tool in {"by_output_info", "by_io_info"},
        inputs=tuple(map(str, list_in(matched, "input_information", where))),
        outputs=(output,) if output else (),
        tools=None
        if entry.get("retrieval_result") is None
        else tuple(
            RetrievedTool(
                name=text_field(tool, "name", where=tools),
                inputs=tuple(map(str, list_in(tool, "input_datatypes", tools))),
                output=text_field(tool, "output_datatype", where=tools),
                tool_type=text_field(tool, "tool_type", where=tools),
                description=text_field(tool, "description", where=tools),
            )
            for _, tool in objects_in(found, "tools", f"{where}retrieval_result.")
        ),
    )


def _call(
    entry: Mapping[str, Any], where: str, callable_names: set[str]
) -> tuple[ToolCall, Execution]:
    """A call and its execution.

    The environment does not state the check that a rejected call failed, unless it was the inputs;
    the retrieved tools distinguish the other two here.
    """
    request = object_in(entry, "request", where)
    if entry.get("parse_ok") is False:
        return ToolCall("", parse_error="no JSON object with a name and arguments"), Execution()
    name = str(request.get("name") or request.get("tool_id") or "")
    call = ToolCall(name, request.get("arguments"))
    if entry.get("tool_result") is None:
        rejection = text_field(entry, "internal_error_type", where=where)
        if entry.get("blocked") is True:
            rejection = "blocked"
        elif not rejection:
            rejection = "wrong_arguments" if name in callable_names else "tool_not_available"
        return call, Execution(rejection=rejection)
    result, where = object_in(entry, "tool_result", where), f"{where}tool_result."
    value, success = result.get("output_value"), result.get("success")
    provenance = text_field(result, "output_provenance", where=where)
    if not provenance:  # older versions omit it
        provenance = "none" if value is None else "trusted"
    if provenance not in get_args(Provenance):
        expected = f"one of {', '.join(get_args(Provenance))}"
        raise RowError(f"{where}output_provenance", expected, provenance)
    return call, Execution(
        was_executed=True,
        success=success if isinstance(success, bool) else None,
        output_datatype=text_field(result, "output_datatype", where=where),
        output_value=value,
        provenance=cast("Provenance", provenance),
        tool_type=text_field(result, "tool_type", where=where),
    )


def _recognises(entry: Mapping[str, Any]) -> bool:
    return {"query_id", "trace", "stop_reason"} <= entry.keys()


def _read(entry: Mapping[str, Any], place: LogPlace, around: Mapping[str, Any]) -> Trajectory:
    """A row of a ``result.jsonl`` without its folder: neither model nor setting is known."""
    del around
    return _trajectory(entry, {}, {}, place)


PLANBENCH_RESULT = LogFormat(
    name=FORMAT,
    title="PlanBench-XL results",
    score=_recognises,
    read=_read,
    claims=is_folder,
    read_path=read_folder,
)
"""Run folders, and rows of a ``result.jsonl`` that is not in one."""
