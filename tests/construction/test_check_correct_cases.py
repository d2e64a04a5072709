"""Correct cases in the dialects that benchmarks are written in: code proves no fault of one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.construction.checks.conditions import CONDITION_CHECKS
from apbjudge.construction.checks.efficiency import EFFICIENCY_CHECKS
from apbjudge.construction.checks.twins import Twins
from apbjudge.construction.findings import CaseFinding

from .checking import case_of

Row = dict[str, Any]
Message = dict[str, Any]


def found(rows: Iterable[Mapping[str, Any]]) -> list[CaseFinding]:
    """What the checks of conditions, twins and tool banks find."""
    twins, findings = Twins(), list[CaseFinding]()
    for line, row in enumerate(rows, start=1):
        case = case_of(row, line)
        twins.add(case)
        findings += (f for each in (*CONDITION_CHECKS, *EFFICIENCY_CHECKS) for f in each(case))
    return [*findings, *twins.findings()]


def proven(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [(f.check, f.message) for f in found(rows) if f.certainty == "proven"]


# A broken tool ------------------------------------------------------------------------------------

SCHEMA = {
    "type": "object",
    "properties": {"town": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["town"],
}
OTHER = {
    "type": "object",
    "properties": {"place": {"type": "string"}, "span": {"type": "integer"}},
    "required": ["place"],
}
FORECAST = {
    "name": "get_forecast",
    "description": "Weather of the days ahead.",
    "parameters": SCHEMA,
}
OUTLOOK = {"name": "sky_outlook", "description": "What the sky will do.", "parameters": OTHER}
FIND = {
    "name": "find_town",
    "description": "Finds a town by name.",
    "parameters": {
        "type": "object",
        "properties": {"words": {"type": "string"}},
        "required": ["words"],
    },
}
ASK = {"name": "ask_user", "description": "Asks the user."}
TOOLS = [FORECAST, OUTLOOK, FIND, ASK]
ARGUMENTS = {"town": "Vik", "days": 3}
FAILED = "Error 503: this endpoint is unavailable."
MAP = {"town": "place", "days": "span"}


def openai(name: str, arguments: object, call_id: str = "c1") -> Message:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": call_id, "type": "function", "function": function}


def says(*calls: Message, text: str | None = None) -> Message:
    return {"role": "assistant", "content": text, "tool_calls": list(calls)}


def result(content: Any = FAILED, role: str = "tool", **fields: Any) -> Message:
    return {"role": role, "content": content, **fields}


def step(name: str, arguments: object) -> Message:
    return {"role": "assistant", "thought": "", "tool_calls": [openai(name, arguments)]}


CALL = openai("get_forecast", ARGUMENTS)
RIGHT = step("sky_outlook", {"place": "Vik", "span": 3})


def broken(*prefix: Message, **changes: Any) -> list[Row]:
    """The forecast of Vik, whose tool has just failed."""
    row = {
        "id": "b1",
        "split": "step_wise_tool_broken",
        "query": "What will the weather be in Vik for 3 days?",
        "system_prompt": "You help travellers.",
        "tools": TOOLS,
        "prediction_horizon": 1,
        "trajectory_prefix": list(prefix) or [says(CALL), result()],
        "ground_truth_steps": [RIGHT],
        "broken_tool_name": "get_forecast",
        "replacement_tool": OUTLOOK,
        "construction": {"parameter_map": MAP},
    }
    return [{k: v for k, v in (row | changes).items() if v is not None}]


BLOCK = {"type": "tool_use", "id": "t1", "name": "get_forecast", "input": ARGUMENTS}
RESULT_BLOCK = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": "no"}
LOOKUP = openai("find_town", {"words": "Vik"}, "c2")

PREFIXES: Mapping[str, list[Message]] = {
    "tool_calls": [says(CALL), result()],
    "content blocks": [
        {"role": "user", "content": [{"type": "text", "text": "Go on."}]},
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, BLOCK]},
        {"role": "user", "content": [RESULT_BLOCK]},
    ],
    "function parts": [
        {"role": "model", "parts": [{"functionCall": {"name": "get_forecast", "args": ARGUMENTS}}]},
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "get_forecast", "response": {"error": "down"}}}
            ],
        },
    ],
    "plain text": [{"role": "user", "content": "So far: get_forecast was called and timed out."}],
    "parallel, broken first": [says(CALL, LOOKUP), result(), result("Vik", tool_call_id="c2")],
    "parallel, a message each": [says(CALL), says(LOOKUP), result(), result("Vik, South")],
    "a look at something else afterwards": [says(CALL), result(), says(LOOKUP), result("Vik")],
    "no result": [says(CALL)],
    "the agent's remark": [says(CALL), result(), {"role": "assistant", "content": "Let me see."}],
    "the user's remark": [says(CALL), result(), {"role": "user", "content": "Go on, please."}],
    "a list as the result": [says(CALL), result([{"type": "text", "text": FAILED}])],
    "a failure in another language": [says(CALL), result("Der Dienst antwortet nicht.")],
    "wrapped in another tool": [
        says(openai("use_tool", {"tool": "get_forecast", "arguments": ARGUMENTS})),
        result(),
    ],
    "a namespace": [says(openai("functions.get_forecast", ARGUMENTS)), result()],
    "the old name of a renamed tool": [says(openai("weather_v1", ARGUMENTS)), result()],
    "a summary": [
        {"role": "system", "content": "Earlier: the weather service failed three times."},
        says(LOOKUP),
        result("Vik"),
    ],
    "a failure told in another language": [
        {"role": "user", "content": "Der Wetterdienst ist leider ausgefallen."},
        says(LOOKUP),
        result("Vik, im Süden"),
    ],
    **{
        f"a result of {role}": [says(CALL), result(role=role)]
        for role in ("tool", "function", "user", "environment", "observation", "ipython")
    },
}


def tool(name: str, properties: Any = None, required: Any = (), **fields: Any) -> Row:
    schema = {"type": "object", "properties": properties or {}, "required": list(required)}
    return {"name": name, "description": "It helps.", "parameters": schema | fields}


def pair(ours: Row, theirs: Row) -> list[Row]:
    return broken(tools=[ours, theirs, FIND], replacement_tool=theirs)


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
ADDRESS = {"type": "object", "properties": {"town": TEXT, "street": TEXT}}
BROKEN: Mapping[str, list[Row]] = {
    **{f"prefix: {name}": broken(*prefix) for name, prefix in PREFIXES.items()},
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
    "$ref": pair(
        tool("get_forecast", {"town": {"$ref": "#/$defs/t"}}, ["town"], **{"$defs": {"t": TEXT}}),
        tool("sky_outlook", {"place": NUMBER}, ["place"]),
    ),
    "nested in an object": pair(
        tool("get_forecast", {"town": TEXT, "street": TEXT}, ["town", "street"]),
        tool("sky_outlook", {"address": ADDRESS}, ["address"]),
    ),
    "optional became required": pair(
        tool("get_forecast", {"town": TEXT, "days": NUMBER}, ["town"]),
        tool("sky_outlook", {"place": TEXT, "span": NUMBER, "unit": TEXT}, ["place", "unit"]),
    ),
    "the broken tool is gone from the list": broken(tools=TOOLS[1:]),
    "the replacement by its name": broken(replacement_tool="sky_outlook"),
    "the replacement beside the list": broken(tools=[FORECAST, FIND]),
    "no replacement": broken(replacement_tool=None),
    "no map": broken(construction={"transform": "tool_broken"}),
    "a constant beside": broken(
        ground_truth_steps=[step("sky_outlook", {"place": "Vik", "span": 3, "unit": "metric"})]
    ),
    "other types of values": broken(
        ground_truth_steps=[step("sky_outlook", {"place": ["Vik"], "span": "3"})]
    ),
    "an optional argument left out": broken(
        ground_truth_steps=[step("sky_outlook", {"place": "Vik"})]
    ),
    "the replacement after a look-up": broken(
        prediction_horizon=2, ground_truth_steps=[step("find_town", {"words": "Vik"}), RIGHT]
    ),
    "another try first": broken(
        prediction_horizon=2, ground_truth_steps=[step("get_forecast", ARGUMENTS), RIGHT]
    ),
    "the user is asked in words": broken(
        ground_truth_steps=[
            {"role": "assistant", "name": "planner", "content": "Shall I?", "tool_calls": None}
        ]
    ),
    "another tool does it": broken(ground_truth_steps=[step("find_town", {"words": "Vik"})]),
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


def door(name: str) -> Row:
    return tool(name, {"door": TEXT}, ["door"]) | {"description": "Changes the state of a door."}


TALK = {"role": "user", "name": "ask_user", "content": "Hello.", "tool_calls": None}
DISTRACTORS: Mapping[str, list[Row]] = {
    "plain": extraneous("ask_user"),
    "level 0": extraneous(),
    "opposites in the same words": extraneous(
        "unlock_door",
        tools=[door("lock_door"), door("unlock_door")],
        tool_chain=[{"name": "lock_door", "parameter_description": {"door": "the front"}}],
    ),
    "a namespace": extraneous("ask_user", tools=[*TOOLS[:3], {"name": "functions.ask_user"}]),
    "tools in the system prompt": extraneous(
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
        ground_truth_steps=[step("get_forecast", ARGUMENTS), result("ok", name="ask_user")],
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
        "construction": {"twin": "p1"},
        **changes,
    }
    return [*plan(), *plan(**fields)]


def removed(*names: str, **changes: Any) -> list[Row]:
    fields = {
        "tools": TOOLS[1:],
        "construction": {"twin": "p1", "removed_tools": list(names or ("get_forecast",))},
    }
    return unsolvable("tool_removal", **fields | changes)


def value(text: str, **changes: Any) -> list[Row]:
    claim = {"twin": "p1", "removed_value": text}
    return unsolvable("information_missing", construction=claim, **changes)


def bound(subject: str, kind: str, limit: float, text: str) -> Row:
    return {"subject": subject, "kind": kind, "value": limit, "text": text}


def limits(*bounds: Row, query: str = "", **changes: Any) -> list[Row]:
    asked = query or " ".join(each["text"] for each in bounds)
    claim = {"twin": "p1", "bounds": list(bounds)}
    return unsolvable("contradictory_constraints", query=asked, construction=claim, **changes)


LEAST = bound("days", "at least", 5, "It has to be at least 5 days.")
MOST = bound("days", "at most", 3, "It may be 3 days at most.")
TWIN = removed()
UNSOLVABLE: Mapping[str, list[Row]] = {
    "no names, and a way that stops": unsolvable("tool_removal", tool_chain=CHAIN[:1]),
    "no names, and the user is told": unsolvable(
        "tool_removal", tool_chain=[{"name": "ask_user", "parameter_description": {}}]
    ),
    "a common word": removed("find", query="Find the weather in Vik."),
    "the names of all tools are listed": removed(tool_names=[each["name"] for each in TOOLS]),
    "another picture stays": unsolvable(
        "visual_missing", files=["images/plant.png"], query="Compare the first picture with it."
    ),
    "a short value": value("3"),
    "an example in a description": value(
        "T-7715", tools=[*TOOLS, {"name": "pay", "description": "Pays, such as from T-7715."}]
    ),
    "a date of something else": value(
        "2026-08-14", query="I arrive on 2026-08-14. When is the festival in Vik?"
    ),
    "limits that exclude each other": limits(LEAST, MOST),
    "one limit, and a rule": limits(MOST, system_prompt="Forecasts are of 7 days or more."),
    "equal limits, meant as open ones": limits(
        bound("days", "at least", 3, "More than 3 days."),
        bound("days", "at most", 3, "Less than 3 days."),
    ),
    "limits in two units": limits(
        bound("duration", "at least", 2, "At least 2 hours."),
        bound("duration", "at most", 90, "At most 90 minutes."),
    ),
    "limits in other words": limits(
        LEAST, MOST, query="Five days or more, and no more than three."
    ),
    "other marks and spaces": limits(
        LEAST, MOST, query=f"«{LEAST['text']}»\n {MOST['text'][:-1]}!"
    ),
    "the twin after it": TWIN[::-1],
    "the twin with its tools in another order": [TWIN[0] | {"tools": TOOLS[::-1]}, TWIN[1]],
    "the twin by the id of its case": [TWIN[0] | {"id": "p1-row", "case_id": "p1"}, TWIN[1]],
    "the twin as a case of steps": [
        broken(id="p1", split="step_wise_planning", broken_tool_name=None, replacement_tool=None)[
            0
        ],
        TWIN[1],
    ],
    "no twin": removed(construction={"removed_tools": ["get_forecast"]})[1:],
}


# Costs --------------------------------------------------------------------------------------------

COSTS = {"get_forecast": 2, "sky_outlook": 5, "find_town": 2, "ask_user": 1, "town_weather": 3}


def bank(costs: Mapping[str, Any] = COSTS, **changes: Any) -> list[Row]:
    """Costs, a tool for both calls of the chain of three, and a trap."""
    definitions = {each["name"]: each for each in TOOLS}
    tools = [
        definitions.get(name, {"name": name, "description": "The weather of a town by name."})
        | ({} if cost is None else {"cost": cost})
        for name, cost in costs.items()
    ]
    fields: Row = {
        "split": None,
        "tools": tools,
        "tool_chain": [*CHAIN, {"name": "ask_user", "parameter_description": {}}],
        "construction": {
            "composites": [{"name": "town_weather", "replaces": [0, 1]}],
            "traps": ["sky_outlook"],
        },
    }
    return plan(**fields | changes)


def composites(*replaces: list[int], traps: Iterable[str] = (), **changes: Any) -> list[Row]:
    made = [{"name": "town_weather", "replaces": each} for each in replaces]
    return bank(construction={"composites": made, "traps": list(traps)}, **changes)


BANKS: Mapping[str, list[Row]] = {
    "plain": bank(),
    "a tie": bank(COSTS | {"town_weather": 4}),
    "a tool without a cost": bank(COSTS | {"ask_user": None}),
    "a called tool without a cost": bank(COSTS | {"find_town": None}),
    "a dear composite as a trap": composites(
        [0, 1], traps=["town_weather"], costs=COSTS | {"town_weather": 9}
    ),
    "a tool for calls apart": composites([0, 2]),
    "a tool for the whole task": composites([0, 1, 2]),
    "the reference takes the composite": composites(
        [0, 1], tool_chain=[{"name": "town_weather"}, {"name": "ask_user"}]
    ),
    "the reference is not the cheapest": bank(
        tool_chain=[CHAIN[0], {"name": "sky_outlook"}, {"name": "ask_user"}]
    ),
    "another style of the names": bank(
        construction={
            "composites": [{"name": "townWeather", "replaces": [0, 1]}],
            "traps": ["functions.sky_outlook"],
        }
    ),
}
CORRECT: Mapping[str, list[Row]] = {
    f"{kind}: {name}": rows
    for kind, cases in (
        ("broken", BROKEN),
        ("distractors", DISTRACTORS),
        ("unsolvable", UNSOLVABLE),
        ("bank", BANKS),
    )
    for name, rows in cases.items()
}


@pytest.mark.parametrize("name", CORRECT)
def test_no_fault_of_a_correct_case_is_proven(name: str) -> None:
    assert proven(CORRECT[name]) == []


@pytest.mark.parametrize(
    "name",
    [
        *(f"broken: prefix: a result of {role}" for role in ("tool", "user", "environment")),
        *(f"broken: prefix: {name}" for name in PREFIXES if name.startswith("parallel")),
        "broken: prefix: function parts",
        "broken: prefix: the agent's remark",
        "broken: prefix: the user's remark",
        "broken: prefix: no result",
        "broken: a constant beside",
        "broken: other types of values",
        "broken: the replacement after a look-up",
        "distractors: a speaker of this name",
        "unsolvable: other marks and spaces",
        "unsolvable: the twin with its tools in another order",
        "unsolvable: the twin as a case of steps",
        "bank: plain",
        "bank: the reference takes the composite",
    ],
)
def test_nor_is_a_fault_suspected_where_code_can_read_the_dialect(name: str) -> None:
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
    of_prefix(lambda prefix: [{"role": "user", "content": "Go on."}, *prefix]),
    of_prefix(lambda prefix: [says(LOOKUP), result("Vik"), *prefix]),
    of_prefix(lambda prefix: [TALK, *prefix]),
    of_prefix(lambda prefix: [*prefix, {"role": "assistant", "content": "Let me think."}]),
    of_prefix(lambda prefix: [*prefix, {"role": "user", "content": "It fails. Try again."}]),
    of_prefix(lambda prefix: [{"name": "planner", **message} for message in prefix]),
    of_prefix(
        lambda prefix: [
            {**message, "role": "environment"} if message.get("role") == "tool" else message
            for message in prefix
        ]
    ),
    lambda row: row | {"query": f"  {row['query']}\n"},
    lambda row: row | {"model": None, "stage": "early"},
)


@settings(max_examples=150)
@given(
    name=st.sampled_from(sorted(CORRECT)),
    prefix=st.sampled_from(sorted(PREFIXES)),
    rewrites=st.lists(st.sampled_from(REWRITES), max_size=4, unique=True),
    is_text=st.booleans(),
)
def test_nor_is_one_proven_of_dialects_put_together(
    name: str, prefix: str, rewrites: list[Callable[[Row], Row]], *, is_text: bool
) -> None:
    rows = CORRECT[name]
    if name.startswith("broken") and "no prefix" not in name:
        rows = [row | {"trajectory_prefix": PREFIXES[prefix]} for row in rows]
    for rewrite in rewrites:
        rows = [rewrite(row) for row in rows]
    assert proven(map(as_texts, rows) if is_text else rows) == []
