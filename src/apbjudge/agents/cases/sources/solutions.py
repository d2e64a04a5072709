"""The solution in a trajectory: the calls that worked, and the source of each of their values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from ....errors import RowError
from ....protocols.tool_words import properties
from ....records import Tool
from ....records.loose_json import as_object
from ....records.trajectories import ToolResult, Trajectory, TrajectoryStep
from ..seeds import SeedCall
from .evidence import CallResults, allowed_values, distinctive, normal, states

LEFT_OUT = "failed calls left out"
JOINED = "the user's turns joined"

_FAILED = re.compile(r"\s*(?:error\b|\{\s*[\"']error[\"']\s*:)", re.IGNORECASE)


class AgentCall(NamedTuple):
    """A call that the agent made.

    Attributes:
        arguments: None if they can't be read as an object.
        result: None if nothing answers it.
    """

    name: str
    arguments: Mapping[str, Any] | None
    step: int
    result: str | None
    is_failed: bool


def agent_calls(steps: Sequence[TrajectoryStep]) -> Iterator[AgentCall]:
    """Yields the agent's calls with their results.

    A call failed if the log says so, or if its result is an error: it begins with the word, or is
    an object with an ``error``.

    Raises:
        RowError: If a result can't be written as JSON.
    """
    for at, step in enumerate(steps):
        if step.source != "agent":
            continue
        for call, answer in zip(step.calls, _answers(step), strict=True):
            arguments = {} if call.arguments is None else as_object(call.arguments)
            result = None if answer is None else _text(answer.content)
            is_failed = (answer is not None and answer.is_error is True) or is_error(result)
            if step.execution is not None:
                is_failed |= not step.execution.was_executed or step.execution.success is False
            readable = None if call.parse_error else arguments
            yield AgentCall(call.name, readable, at, result, is_failed)


def _answers(step: TrajectoryStep) -> list[ToolResult | None]:
    """The result of each call of a step: by id, else the next without one that fits the name."""
    ids = {call.call_id for call in step.calls if call.call_id}
    by_id = {answer.call_id: answer for answer in reversed(step.observations)}
    waiting = [answer for answer in step.observations if answer.call_id not in ids]
    answers: list[ToolResult | None] = []
    for call in step.calls:
        answer = by_id.pop(call.call_id, None) if call.call_id else None
        named = (other for other in waiting if other.name in ("", call.name))
        fits = (other for other in named if not (call.call_id and other.call_id))
        if answer is None and (answer := next(fits, None)) is not None:
            waiting.remove(answer)
        answers.append(answer)
    return answers


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    try:
        return orjson.dumps(content).decode()
    except TypeError as error:
        expected = "values that can be written as JSON"
        raise RowError("observations", expected, str(error)) from None


def is_error(result: str | None) -> bool:
    """True if a result says itself that the call failed."""
    if result is None or not _FAILED.match(result):
        return False
    try:
        fault = as_object(orjson.loads(result))
    except orjson.JSONDecodeError:
        return True
    return fault is None or bool(fault.get("error", True))


def needs_of(
    trajectory: Trajectory, calls: Sequence[SeedCall], tools: Mapping[str, Tool]
) -> tuple[SeedCall, ...]:
    """The calls, each with the earlier calls whose results its arguments use.

    A value counts as used if a text or number in it is in an earlier result, and neither in the
    system prompt, nor in the user's turns so far, nor among the values that the tool lists, nor
    passed by an earlier call that could not have it from a result. Of several results the last
    one counts.

    Args:
        trajectory: The trajectory, with all its steps.
        calls: Calls in order, with results.
        tools: The tools offered, by name.
    """
    results = CallResults()
    stated, own = normal(f"{trajectory.system_prompt}\n{trajectory.query}"), set[str]()
    read = 0
    known: list[SeedCall] = []
    for call in calls:
        for step in trajectory.steps[read : call.step]:
            if step.source == "user" and step.text:
                stated = f"{stated}\n{normal(step.text)}"
        read = max(read, call.step)
        tool = tools.get(call.name)
        described = properties(tool) if tool else {}
        needs: dict[str, int] = {}
        for parameter, value in call.arguments.items():
            listed = allowed_values(described.get(parameter, {}))
            indices: list[int] = []
            for leaf in distinctive(value):
                if normal(leaf) in listed or normal(leaf) in own or states(stated, leaf):
                    continue
                if (at := results.last(leaf)) is None:
                    own.add(normal(leaf))
                else:
                    indices.append(at)
            if indices:
                needs[parameter] = max(indices)
        known.append(replace(call, needs=needs) if needs else call)
        results.add(call.result)
    return tuple(known)


def query_of(trajectory: Trajectory, calls: Sequence[SeedCall]) -> tuple[str, bool]:
    """The user's query, and whether several turns had to be joined for it.

    It is the first message; where later messages before the last call state values that calls
    pass, it is all messages up to that call.
    """
    if not calls:
        return trajectory.query, False
    texts = turns_before(trajectory, calls[-1].step)
    later = normal("\n".join(texts[1:]))
    first = normal(f"{trajectory.system_prompt}\n{texts[0]}")
    for call in calls if later else ():
        for leaf in distinctive(list(call.arguments.values())):
            if not states(first, leaf) and states(later, leaf):
                return "\n\n".join(texts), True
    return texts[0], False


def turns_before(trajectory: Trajectory, end: int) -> list[str]:
    """The user's turns before a step, the trajectory's query first."""
    turns = (step.text for step in trajectory.steps[:end] if step.source == "user")
    texts = [text for text in turns if text.strip()]
    return texts if texts[:1] == [trajectory.query] else [trajectory.query, *texts]
