"""Correct cases in the dialects that benchmarks are written in: code proves no fault of one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.construction.checks.conditions import CONDITION_CHECKS
from apbjudge.construction.checks.twins import Twins
from apbjudge.construction.findings import CaseFinding

from .checking import call, case_of, said
from .worlds import tool as offered

Row = dict[str, Any]
Message = dict[str, Any]


def found(rows: Iterable[Mapping[str, Any]]) -> list[CaseFinding]:
    """What the checks of conditions and twins find."""
    twins, findings = Twins(), list[CaseFinding]()
    for line, row in enumerate(rows, start=1):
        case = case_of(row, line)
        twins.add(case)
        findings += (f for each in CONDITION_CHECKS for f in each(case))
    return [*findings, *twins.findings()]


def proven(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [(f.check, f.message) for f in found(rows) if f.certainty == "proven"]


# A broken tool ------------------------------------------------------------------------------------

FORECAST = offered(
    "get_forecast", "Weather of the days ahead.", "days", town="string", days="integer"
)
OUTLOOK = offered("sky_outlook", "What the sky will do.", "span", place="string", span="integer")
FIND = offered("find_town", "Finds a town by name.", words="string")
ASK = {"name": "ask_user", "description": "Asks the user."}
TOOLS = [FORECAST, OUTLOOK, FIND, ASK]
ARGUMENTS = {"town": "Vik", "days": 3}
FAILED = "Error 503: this endpoint is unavailable."
MAP = {"town": "place", "days": "span"}


def result(content: Any = FAILED, role: str = "tool", **fields: Any) -> Message:
    return {"role": role, "content": content, **fields}


CALL, LOOKUP = call("get_forecast", **ARGUMENTS), call("find_town", words="Vik")
RIGHT = said(call("sky_outlook", place="Vik", span=3))


def broken(*prefix: Message, **changes: Any) -> list[Row]:
    """The forecast of Vik, whose tool has just failed."""
    row = {
        "id": "b1",
        "split": "step_wise_tool_broken",
        "query": "What will the weather be in Vik for 3 days?",
        "system_prompt": "You help travellers.",
        "tools": TOOLS,
        "prediction_horizon": 1,
        "trajectory_prefix": list(prefix) or [said(CALL), result()],
        "ground_truth_steps": [RIGHT],
        "broken_tool_name": "get_forecast",
        "replacement_tool": OUTLOOK,
        "construction": {"parameter_map": MAP},
    }
    return [{k: v for k, v in (row | changes).items() if v is not None}]


BLOCK = {"type": "tool_use", "id": "t1", "name": "get_forecast", "input": ARGUMENTS}
RESULT_BLOCK = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": "no"}

PREFIXES: Mapping[str, list[Message]] = {
    "content blocks": [
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, BLOCK]},
        {"role": "user", "content": [RESULT_BLOCK]},
    ],
    "function parts": [
        {"role": "model", "parts": [{"functionCall": {"name": "get_forecast", "args": ARGUMENTS}}]},
        {"role": "user", "parts": [{"functionResponse": {"response": {"error": "down"}}}]},
    ],
    "plain text": [{"role": "user", "content": "So far: get_forecast was called and timed out."}],
    "parallel, a message each": [said(CALL), said(LOOKUP), result(), result("Vik, South")],
    "no result": [said(CALL)],
    "the agent's remark": [said(CALL), result(), {"role": "assistant", "content": "Let me see."}],
    "a list as the result": [said(CALL), result([{"type": "text", "text": FAILED}])],
    "a namespace": [said(call("functions.get_forecast", **ARGUMENTS)), result()],
    "a result of a user": [said(CALL), result(role="user")],
}
DOUBTFUL: Mapping[str, list[Message]] = {
    "wrapped in another tool": [
        said(call("use_tool", tool="get_forecast", arguments=ARGUMENTS)),
        result(),
    ],
    "the old name of a renamed tool": [said(call("weather_v1", **ARGUMENTS)), result()],
    "a summary": [
        {"role": "system", "content": "Earlier: the weather service failed three times."},
        said(LOOKUP),
        result("Vik"),
    ],
    "a failure told in another language": [
        {"role": "user", "content": "Der Wetterdienst ist leider ausgefallen."},
        said(LOOKUP),
        result("Vik, im Süden"),
    ],
}
"""Here code can only suspect that the broken tool was not called last."""


def tool(name: str, properties: Any = None, required: Any = (), **fields: Any) -> Row:
    schema = {"type": "object", "properties": properties or {}, "required": list(required)}
    return {"name": name, "description": "It helps.", "parameters": schema | fields}


def pair(ours: Row, theirs: Row) -> list[Row]:
    return broken(tools=[ours, theirs, FIND], replacement_tool=theirs)


TEXT = {"type": "string"}
BROKEN: Mapping[str, list[Row]] = {
    **{name: broken(*prefix) for name, prefix in PREFIXES.items()},
    "no prefix": broken(trajectory_prefix=[]),
    "no JSON Schema": broken(
        tools=[{**FORECAST, "parameters": {"town": "a town"}}, {"name": "sky_outlook"}]
    ),
    "tools in the system prompt": broken(
        tools=[], system_prompt="Tools: get_forecast(town), sky_outlook(place)."
    ),
    "a list of types": pair(
        tool("get_forecast", {"town": {"type": ["string", "null"]}}, ["town"]),
        tool("sky_outlook", {"place": {"type": ["integer", "string"]}}, ["place"]),
    ),
    "oneOf around everything": pair(
        tool("get_forecast", {"town": TEXT}, ["town"]),
        tool("sky_outlook", {"flag": {"type": "boolean"}}, [], oneOf=[{"required": ["place"]}]),
    ),
    "the replacement by its name": broken(replacement_tool="sky_outlook"),
    "no replacement": broken(replacement_tool=None),
    "a constant beside": broken(
        ground_truth_steps=[said(call("sky_outlook", place="Vik", span=3, unit="metric"))]
    ),
    "other types of values": broken(
        ground_truth_steps=[said(call("sky_outlook", place=["Vik"], span="3"))]
    ),
    "the replacement after a look-up": broken(
        prediction_horizon=2, ground_truth_steps=[said(LOOKUP), RIGHT]
    ),
    "no reference": broken(ground_truth_steps=None),
}


# Distractors --------------------------------------------------------------------------------------

CHAIN = [
    {"name": "find_town", "parameter_description": {"words": "Vik"}, "reason": "to be sure"},
    {"name": "get_forecast", "parameter_description": {"town": "it", "days": "3"}},
]


def plan(**changes: Any) -> list[Row]:
    row = {
        "id": "p1",
        "split": "holistic_planning",
        "query": "What will the weather be in Vik for 3 days?",
        "system_prompt": "You help travellers.",
        "tools": TOOLS,
        "plan": "Find the town, then its forecast.",
        "tool_chain": CHAIN,
    }
    return [{k: v for k, v in (row | changes).items() if v is not None}]


def extraneous(*names: str, **changes: Any) -> list[Row]:
    changes = {"split": "holistic_tool_extraneous", "extraneous_tool_names": list(names), **changes}
    return plan(**changes)


TALK = {"role": "user", "name": "ask_user", "content": "Hello.", "tool_calls": None}
DISTRACTORS: Mapping[str, list[Row]] = {
    "distractors": extraneous("ask_user"),
    "a distractor in a namespace": extraneous(
        "ask_user", tools=[*TOOLS[:3], {"name": "functions.ask_user"}]
    ),
    "distractors in the system prompt": extraneous(
        "ask_user", tools=[], system_prompt="Tools: find_town, get_forecast, ask_user"
    ),
    "a speaker of this name": broken(
        TALK,
        {"role": "assistant", "content": [{"type": "document", "name": "ask_user", "text": "x"}]},
        split="step_wise_tool_extraneous",
        broken_tool_name=None,
        replacement_tool=None,
        construction=None,
        extraneous_tool_names=["ask_user"],
        ground_truth_steps=[said(CALL), result("ok", name="ask_user")],
        reference_remaining_steps=[TALK, result("ok", name="ask_user")],
    ),
}


# No solution --------------------------------------------------------------------------------------


def unsolvable(kind: str, **changes: Any) -> list[Row]:
    """A case that can't be solved, after its twin."""
    fields: Row = {
        "id": "u1",
        "split": "holistic_unsolvable",
        "unsolvable_type": kind,
        "plan": "The task can't be done: something is missing.",
        "tool_chain": None,
        **changes,
    }
    return [*plan(), *plan(**fields)]


REMOVED = {"twin": "p1", "removed_tools": ["get_forecast"]}
NAMES = [each["name"] for each in TOOLS]
TWIN = unsolvable("tool_removal", tools=TOOLS[1:], construction=REMOVED)
AT_LEAST = {"subject": "days", "kind": "at least", "value": 5, "text": "At least 5 days."}
AT_MOST = {"subject": "days", "kind": "at most", "value": 3, "text": "3 days at most."}
UNSOLVABLE: Mapping[str, list[Row]] = {
    "the names of all tools are listed": [TWIN[0], TWIN[1] | {"tool_names": NAMES}],
    "limits in other marks and spaces": unsolvable(
        "contradictory_constraints",
        query=f"«{AT_LEAST['text']}»\n 3  days at most!",
        construction={"twin": "p1", "bounds": [AT_LEAST, AT_MOST]},
    ),
    "the twin after it": TWIN[::-1],
    "the twin with its tools in another order": [TWIN[0] | {"tools": TOOLS[::-1]}, TWIN[1]],
    "the twin by the id of its case": [TWIN[0] | {"id": "p1-row", "case_id": "p1"}, TWIN[1]],
    "the twin as a case of steps": [
        *broken(id="p1", split="step_wise_planning", broken_tool_name=None, replacement_tool=None),
        TWIN[1],
    ],
    "no twin": [TWIN[1] | {"construction": REMOVED | {"twin": None}}],
}


CORRECT: Mapping[str, list[Row]] = {**BROKEN, **DISTRACTORS, **UNSOLVABLE}


@pytest.mark.parametrize("name", CORRECT)
def test_nothing_is_found_in_a_correct_case(name: str) -> None:
    assert [(f.check, f.message) for f in found(CORRECT[name])] == []


# Dialects put together ----------------------------------------------------------------------------


def of_tools(change: Callable[[list[Any]], list[Any]]) -> Callable[[Row], Row]:
    return lambda row: row | {"tools": change(row["tools"])} if row.get("tools") else row


def of_prefix(change: Callable[[list[Message]], list[Message]]) -> Callable[[Row], Row]:
    def changed(row: Row) -> Row:
        prefix = row.get("trajectory_prefix")
        return row | {"trajectory_prefix": change(prefix)} if prefix else row

    return changed


def as_texts(row: Row) -> Row:
    """The row with its parts as JSON in strings, as the published files have them."""
    names = ("tools", "tool_chain", "trajectory_prefix", "ground_truth_steps", "replacement_tool")
    return {
        f"{key}_json" if key in names else key: json.dumps(part) if key in names else part
        for key, part in row.items()
    }


def as_function(definition: Any) -> Any:
    is_one = "function" in definition
    return definition if is_one else {"type": "function", "function": definition}


REWRITES: tuple[Callable[[Row], Row], ...] = (
    of_tools(lambda tools: tools[::-1]),
    of_tools(lambda tools: [as_function(each) for each in tools]),
    of_tools(lambda tools: [*tools, {"name": "ring_bell", "description": "Rings.", "cost": 4}]),
    of_prefix(lambda prefix: [said(LOOKUP), result("Vik"), *prefix]),
    of_prefix(lambda prefix: [*prefix, {"role": "assistant", "content": "Let me think."}]),
    of_prefix(lambda prefix: [{"name": "planner", **message} for message in prefix]),
    of_prefix(
        lambda prefix: [
            {**message, "role": "environment"} if message.get("role") == "tool" else message
            for message in prefix
        ]
    ),
    lambda row: row | {"model": None, "stage": "early"},
)


@settings(max_examples=150)
@given(
    name=st.sampled_from(sorted(CORRECT)),
    prefix=st.sampled_from([*PREFIXES.values(), *DOUBTFUL.values()]),
    rewrites=st.lists(st.sampled_from(REWRITES), max_size=4, unique=True),
    is_text=st.booleans(),
)
def test_no_fault_is_proven_of_dialects_put_together(
    name: str, prefix: list[Message], rewrites: list[Callable[[Row], Row]], *, is_text: bool
) -> None:
    rows = CORRECT[name]
    if name in BROKEN and name != "no prefix":
        rows = [row | {"trajectory_prefix": prefix} for row in rows]
    for rewrite in rewrites:
        rows = [rewrite(row) for row in rows]
    assert proven(map(as_texts, rows) if is_text else rows) == []
