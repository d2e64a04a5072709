"""Trajectories that a model simulated: the rules for them, and the seeds that they make."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from ....protocols.checks.schema import UncheckedError, violations
from ....protocols.leak_patterns import TELLS_CASE
from ....protocols.prompt_leaks import mentions
from ....protocols.tool_words import properties, squashed
from ....records import Call, Tool
from ....records.loose_json import as_list, as_object
from ....records.tools import build_toolset, read_tool
from ....records.trajectories import ToolCall, ToolResult, TrajectoryStep
from ..likeness import definition_of
from ..literals import is_worded, numbers_in
from ..seeds import Leaf, Seed, SeedCall
from ..sources.evidence import CallResults, allowed_values, distinctive, normal, states
from ..sources.solutions import needs_of
from ..turns import calls_in
from .complaints import Complaint, TextReading, length, reading, text_in, text_of
from .tasks import FINISH, SIMULATED, WritingTask
from .tool_rules import valid_tool

_ERROR = re.compile(
    r"\b(?:errors?|exceptions?|fail(?:s|ed|ure)?|unable|can ?not|could not|denied|refused|invalid|"
    r"unavailable|unauthorized|timed out|time-?out|(?:not|none|nothing) (?:be )?found|"
    r"no (?:results?|such|matches)|try again)\b|\"(?:success|ok)\":false|\"is_?error\":true",
    re.IGNORECASE,
)
"""Words of a result that no successful call would have; JSON is written without blanks."""
_PROSE = 4
"""Number of words from which an argument is a composed text, not a value; an answer always is."""


class SimulatedTurn(NamedTuple):
    """A turn of the agent with its one call, and the result; empty for the last turn."""

    thought: str
    call: Call
    result: str


def simulated(task: WritingTask, answer: Mapping[str, Any]) -> TextReading:
    """Reads a simulated trajectory: the harder query, the new tools, and all messages."""
    query, listed = text_of(answer["query"]), as_list(answer["messages"]) or []
    complaints = list(_query_complaints(task, query))
    tools = list[Tool]()
    for number, entry in enumerate(as_list(answer["tools"]) or (), start=1):
        tool = valid_tool(entry)
        if isinstance(tool, str):
            detail = f"Tool {number} is no valid definition: {tool}."
            complaints.append(Complaint("definition invalid", detail))
        else:
            tools.append(tool)
    complaints += _names(task, tools)
    turns = _turns(listed)
    if isinstance(turns, Complaint):
        return reading({}, [*complaints, turns])
    complaints += _turn_complaints(task, query, tools, turns)
    messages = [message for turn in turns for message in _messages_of(turn)]
    value = {"query": query, "tools": list(map(definition_of, tools)), "messages": messages}
    return reading(value, complaints)


def _query_complaints(task: WritingTask, query: str) -> Iterator[Complaint]:
    yield from length("query", query, most=3 * len(task.query) + 1500)
    if squashed(query) == squashed(task.query):
        yield Complaint("same as before", "The query is the same as before.")
    for name in task.offered:
        if mentions(query, name) and not mentions(task.query, name):
            yield Complaint("tool named", f"The query names the tool {name!r}.")
    if (match := TELLS_CASE.search(query)) and not TELLS_CASE.search(task.query):
        detail = f"The query itself must not say what is special about it: {match.group()!r}."
        yield Complaint("condition told", detail)


def _names(task: WritingTask, tools: Sequence[Tool]) -> Iterator[Complaint]:
    taken = {squashed(name) for name in task.offered}
    for tool in tools:
        if squashed(tool.name) in taken:
            yield Complaint("name taken", f"A tool called {tool.name!r} is offered already.")
        taken.add(squashed(tool.name))


# Messages -----------------------------------------------------------------------------------------


def _turns(messages: Sequence[Any]) -> list[SimulatedTurn] | Complaint:
    """The turns, or the first place at which the messages are not one call and its result."""
    turns: list[SimulatedTurn] = []
    for at, entry in enumerate(messages):
        message, expected = as_object(entry) or {}, ("assistant", "tool")[at % 2]
        if message.get("role") != expected:
            detail = f"Message {at + 1} has role {message.get('role')!r}, expected {expected!r}."
            return Complaint("no alternation", detail)
        if expected == "tool":
            turns[-1] = turns[-1]._replace(result=_result_in(message))
            continue
        calls = calls_in(message)
        if len(calls) != 1:
            detail = f"Message {at + 1} makes {len(calls)} calls, expected exactly one."
            return Complaint("not one call", detail)
        turns.append(SimulatedTurn(text_of(message.get("content")), calls[0], ""))
    if len(messages) % 2 == 0:
        detail = f"The last message has to be the agent's, with a call of {FINISH!r}."
        return Complaint("end missing", detail)
    return turns


def _result_in(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    return content.strip() if isinstance(content, str) else orjson.dumps(content).decode()


def _turn_complaints(
    task: WritingTask, query: str, tools: Sequence[Tool], turns: Sequence[SimulatedTurn]
) -> Iterator[Complaint]:
    names = [turn.call.name for turn in turns]
    if names[-1] != FINISH or FINISH in names[:-1]:
        detail = f"{FINISH!r} has to be called once, as the last of all calls."
        yield Complaint("end missing", detail)
    if (n := len(names) - names.count(FINISH)) < task.least_calls:
        detail = f"There are {n} calls besides {FINISH!r}, expected at least {task.least_calls}."
        yield Complaint("too short", detail)
    if not {tool.name for tool in tools} & set(names):
        yield Complaint("no new tool", "None of the new tools is called.")
    offered = (read_tool(tool, "tools") for tool in task.tools)
    known = {tool.name: tool for tool in (*offered, *tools)}
    stated, results = normal(f"{task.system_prompt}\n{query}"), CallResults()
    for number, turn in enumerate(turns, start=1):
        call, place = turn.call, f"Call {number}, of {turn.call.name!r}"
        tool = known.get(call.name)
        if tool is None:
            yield Complaint("tool not documented", f"{place}, is of no tool that is defined.")
        else:
            yield from _argument_complaints(call, tool, place)
        for leaf in _invented(call, tool, stated, results):
            detail = f"{place}: {leaf!r} is in neither the query nor an earlier result."
            yield Complaint("invented value", detail)
        if number < len(turns) and _is_failed(turn.result):
            detail = f"{place}: expected the result of a call that works: {turn.result[:80]!r}."
            yield Complaint("failed result", detail)
        results.add(turn.result)
    yield from _quoted(task, tools, turns)


def _invented(call: Call, tool: Tool | None, stated: str, results: CallResults) -> Iterator[Leaf]:
    """Yields the values of a call that neither the user, its tool nor an earlier result states."""
    described = properties(tool) if tool else {}
    for parameter, value in (call.arguments or {}).items():
        listed = allowed_values(described.get(parameter, {}))
        for leaf in _parts(value, least=1 if call.name == FINISH else _PROSE):
            is_known = normal(leaf) in listed or states(stated, leaf)
            if not is_known and results.last(leaf) is None:
                yield leaf


def _is_failed(result: str) -> bool:
    """True if a result is empty, or has words that no successful call would return."""
    with suppress(orjson.JSONDecodeError):
        result = orjson.dumps(orjson.loads(result)).decode()
    return result in ("", '""', "{}", "[]", "null") or _ERROR.search(result) is not None


def _argument_complaints(call: Call, tool: Tool, place: str) -> Iterator[Complaint]:
    if call.arguments is None:
        yield Complaint("arguments invalid", f"{place}: expected the arguments as an object.")
        return
    try:
        faults = violations(tool.parameters, call.arguments) if tool.parameters else ()
    except UncheckedError:
        return
    for fault in faults:
        yield Complaint("arguments invalid", f"{place}{fault.path}: {fault.message}")


def _parts(value: object, *, least: int) -> list[Leaf]:
    """The values of an argument that need a source.

    Args:
        value: The argument.
        least: Words from which on a text is composed: of it only the numbers and ids need one.
    """
    parts: list[Leaf] = []
    for leaf in distinctive(value):
        words = leaf.split() if isinstance(leaf, str) else []
        parts += distinctive(numbers_in(str(leaf))) if len(words) >= least else [leaf]
    return parts


def _quoted(
    task: WritingTask, tools: Sequence[Tool], turns: Sequence[SimulatedTurn]
) -> Iterator[Complaint]:
    """Yields complaints about new tools whose definition states a value that a call passes."""
    others = text_in(list(task.tools))
    values = {
        str(leaf)
        for turn in turns
        for leaf in distinctive(turn.call.arguments)
        if any(c.isdigit() or c.isupper() for c in str(leaf))
    }
    for tool in tools:
        shown = f"{tool.description}\n{text_in(properties(tool))}"
        for value in sorted(values):
            if is_worded(value, shown) and not is_worded(value, others):
                detail = f"The definition of {tool.name!r} states {value!r}, a value of the task."
                yield Complaint("task quoted", detail)


def _messages_of(turn: SimulatedTurn) -> Iterator[dict[str, Any]]:
    call = {"name": turn.call.name, "arguments": turn.call.arguments}
    yield {"role": "assistant", "content": turn.thought, "tool_calls": [call]}
    if turn.call.name != FINISH:
        yield {"role": "tool", "content": turn.result}


# The seed -----------------------------------------------------------------------------------------


def with_trajectory(seed: Seed, value: Mapping[str, Any], task: WritingTask) -> Seed:
    """The seed of an accepted trajectory, with the files, source and licence of the old seed.

    Raises:
        RowError: If the tools can't be read.
    """
    steps = [TrajectoryStep("user", text=value["query"])]
    calls = list[SeedCall]()
    messages = value["messages"]
    for at in range(0, len(messages), 2):
        (stated,), call_id = messages[at]["tool_calls"], f"call_{at // 2}"
        call = ToolCall(stated["name"], stated["arguments"], call_id)
        is_last = at + 1 == len(messages)
        result = "" if is_last else messages[at + 1]["content"]
        answers = () if is_last else (ToolResult(result, call_id, call.name),)
        text = messages[at]["content"]
        steps.append(TrajectoryStep("agent", "call", text, calls=(call,), observations=answers))
        calls.append(SeedCall(call.name, stated["arguments"], len(steps) - 1, result))
    trajectory = replace(
        seed.trajectory,
        query=value["query"],
        tools=(*task.tools, *value["tools"]),
        steps=tuple(steps),
    )
    toolset = build_toolset(list(trajectory.tools or ()), None, "tools")
    *solution, end = needs_of(trajectory, calls, toolset.by_name)
    # an answer follows from the last call's result, whatever its words
    end = replace(end, needs=dict.fromkeys(end.arguments, len(solution) - 1))
    return replace(
        seed,
        trajectory=trajectory,
        calls=(*solution, end),
        plan="",
        ends=(seed.ends or frozenset()) | {FINISH},
        repairs=(*seed.repairs, SIMULATED),
        written=(*seed.written, value["query"]),
    )
