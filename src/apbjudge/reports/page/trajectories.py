"""A whole trajectory of an agent as plain JSON for the report page.

Keys without a value are left out. Texts are unchanged, except that very long ones are cut: the page
itself makes invisible characters visible and never reads a text as markup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import orjson
from pydantic import ValidationError

from ...errors import RowError
from ...records.judgements import Diagnosis
from ...records.tools import read_tool
from ...records.trajectories import (
    REMARKS,
    Execution,
    LogPlace,
    Retrieval,
    ToolCall,
    ToolResult,
    Trajectory,
    TrajectoryStep,
)
from .steps import call_view, step_view
from .values import View, as_json, present, safe

STEPS_SHOWN = 5_000
"""Largest number of steps of a trajectory on the page; the others are only counted."""
TEXT_SHOWN = 20_000
"""Largest number of characters of a text on the page; a note states the number left out."""


def diagnosis_of(rows: Sequence[Mapping[str, Any] | None]) -> Diagnosis | None:
    """The diagnosis of a trajectory by the first judge that measured it.

    Args:
        rows: Rows of ``judgements.jsonl``; a diagnosis that can't be read counts as none.
    """
    for row in rows:
        if row and row.get("diagnosis") is not None:
            with suppress(ValidationError):
                return Diagnosis.model_validate(row["diagnosis"])
    return None


def trajectory_view(trajectory: Trajectory, diagnosis: Diagnosis | None) -> View:
    """A trajectory with its steps, and a diagnosis of them.

    Args:
        trajectory: The trajectory.
        diagnosis: Its word and first error are marked at the steps; None for no marks.

    Returns:
        ``trial``, ``setting``, ``termination``, ``broke`` (a failure outside of the tested model),
        ``success``, ``reward``, ``usage``, ``scores``, ``place`` (in the log, in words),
        ``answer`` (left out if there is none), ``word``, ``first_error`` (number of a step),
        ``remarks`` (name, count and meaning), ``n_steps`` if not all are shown, ``extra``, and
        ``steps`` (see the module of this name). The arguments of a call are also ``raw`` if they
        are too long. ``results`` have text, call (index in ``calls``), name and
        is_error; a step may have ``retrieval``, ``execution``, ``extra``, and ``word``: the letters
        of its executed calls.
    """
    outcome, steps = trajectory.outcome, trajectory.steps
    word = "" if diagnosis is None else diagnosis.word
    first_error = None if diagnosis is None else diagnosis.first_error
    letters = _letters(steps, word)
    answer = trajectory.final_answer
    return {
        **present(
            trial=trajectory.trial,
            setting=trajectory.setting,
            termination=trajectory.termination,
            broke=_text(trajectory.infrastructure_error),
            success=outcome and outcome.is_success,
            reward=outcome and outcome.reward,
            usage=trajectory.usage,
            scores=trajectory.scores,
            place=_place(trajectory.place),
            word=word,
            first_error=None if first_error is None else first_error + 1,
            remarks=[
                present(name=name, count=count, meaning=REMARKS.get(name))
                for name, count in trajectory.remarks.items()
            ],
            n_steps=len(steps) if len(steps) > STEPS_SHOWN else None,
            extra=_extra(trajectory.extra),
        ),
        **({} if answer is None else {"answer": _text(answer)}),
        "steps": [
            _step(number, step, letters.get(number, ""))
            for number, step in enumerate(steps[:STEPS_SHOWN], 1)
        ],
    }


def task_view(trajectory: Trajectory) -> View:
    """The fields that all trajectories of a task share, in the form of ``case_view``."""
    tools = trajectory.tools
    return {
        "query": _text(trajectory.query),
        **present(system=_text(trajectory.system_prompt)),
        **({} if tools is None else {"tools": [_definition(tool) for tool in tools]}),
    }


def _place(place: LogPlace) -> str:
    log = " ".join(filter(None, [place.format, place.version]))
    number = f"trajectory {place.line}" if place.line else ""
    return ", ".join(filter(None, [log, place.file, number]))


def _letters(steps: tuple[TrajectoryStep, ...], word: str) -> dict[int, str]:
    """The letters of each step, by its number; empty if they can't be assigned to steps.

    Environments state which calls were executed; in other logs, all calls of the agent were.
    """
    if any(step.execution for step in steps):
        executed = [int(bool(step.execution and step.execution.was_executed)) for step in steps]
    else:
        executed = [len(step.calls) if step.source == "agent" else 0 for step in steps]
    if sum(executed) != len(word):
        return {}
    letters = iter(word)
    return {
        number: "".join(next(letters) for _ in range(n))
        for number, n in enumerate(executed, 1)
        if n
    }


def _step(number: int, step: TrajectoryStep, word: str) -> View:
    return step_view(
        map(_call, step.calls),
        number=number,
        source=step.source,
        kind=step.kind,
        text=_text(step.text),
        thought=_text(step.thought),
        results=[_result(seen, step.calls) for seen in step.observations],
        retrieval=step.retrieval and _retrieval(step.retrieval),
        execution=step.execution and _execution(step.execution),
        word=word,
        extra=_extra(step.extra),
    )


def _call(call: ToolCall) -> View:
    stated: Any = call.arguments
    if isinstance(stated, dict) and len(orjson.dumps(safe(stated))) <= TEXT_SHOWN:
        return call_view(call.name, stated, error=call.parse_error)
    return {"name": call.name, **present(raw=_text(stated), error=call.parse_error)}


def _result(seen: ToolResult, calls: tuple[ToolCall, ...]) -> View:
    """The result of a call; one without an id belongs to the step's only call."""
    ids = [call.call_id for call in calls]
    call = ids.index(seen.call_id) if seen.call_id and seen.call_id in ids else None
    if not seen.call_id and len(calls) == 1:
        call = 0
    return {
        "text": _text(seen.content),
        **present(call=call, name=seen.name, is_error=seen.is_error or None),
    }


def _retrieval(search: Retrieval) -> View:
    """A search; its ``tools`` are left out if it failed."""
    view = present(**{**asdict(search), "tools": None})
    if search.tools is not None:
        view["tools"] = [present(**asdict(of), mark=_mark(of.tool_type)) for of in search.tools]
    return view


def _execution(facts: Execution) -> View:
    value = facts.output_value
    view = {**asdict(facts), "output_value": None if value is None else _text(value)}
    return present(**view, mark=_mark(facts.tool_type))


def _mark(tool_type: str) -> str | None:
    """Mark of a tool by its type."""
    if tool_type.startswith("block"):
        return "blocked"
    return "noisy" if tool_type.startswith("nois") else None


def _definition(tool: Any) -> View:
    """An offered tool, as in ``case_view``; unreadable ones are shown unchanged."""
    try:
        known = read_tool(tool, "tools")
    except RowError:
        return {"name": "", **present(parameters=safe(tool))}
    described = present(description=known.description, parameters=safe(known.parameters))
    return {"name": known.name, **described}


def _extra(fields: dict[str, Any]) -> str:
    return _text(fields) if fields else ""


def _text(value: Any) -> str:
    """A text, or a value as JSON; a very long one is cut."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else as_json(value)
    if len(text) <= TEXT_SHOWN:
        return text
    return f"{text[:TEXT_SHOWN]}\n[{len(text) - TEXT_SHOWN:,} more characters, see the log]"
