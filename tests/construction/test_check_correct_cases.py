"""Cases without faults, written in as many ways as people write them: nothing is proven of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.construction.checks.conditions import CONDITION_CHECKS
from apbjudge.construction.checks.efficiency import EFFICIENCY_CHECKS
from apbjudge.construction.findings import CaseFinding

from .checking import findings_of

Row = dict[str, Any]
Message = dict[str, Any]
ARGUMENTS = {"ship": "Alma", "nights": 2}
FAILED = "Error 503: the service is not available."


def tool(name: str, about: str, **fields: Any) -> Row:
    properties = {"ship": {"type": "string"}, "nights": {"type": "integer"}}
    schema = {"type": "object", "properties": properties, "required": ["ship", "nights"]}
    return {"name": name, "description": about, "parameters": schema, **fields}


BOOK = tool("book_berth", "Books a berth for a ship.")
RESERVE = tool("reserve_mooring", "Keeps a place at the quay for a vessel.")
TIDES = {"name": "get_tides", "description": "Gives high water.", "parameters": {"type": "object"}}


def proven(row: Mapping[str, Any]) -> list[CaseFinding]:
    found = findings_of((*CONDITION_CHECKS, *EFFICIENCY_CHECKS), row)
    return [finding for finding in found if finding.certainty == "proven"]


# Broken tools -------------------------------------------------------------------------------------


def chat(name: str, arguments: Any, result: str) -> list[Message]:
    call = {"name": name, "arguments": json.dumps(arguments)}
    made = {"id": "c1", "type": "function", "function": call}
    return [
        {"role": "assistant", "content": None, "tool_calls": [made]},
        {"role": "tool", "tool_call_id": "c1", "content": result},
    ]


def parallel(name: str, arguments: Any, result: str) -> list[Message]:
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": each, "arguments": "{}"}}
        for n, each in enumerate([name, "get_tides"])
    ]
    results = [
        {"role": "tool", "tool_call_id": f"c{n}", "content": text}
        for n, text in enumerate([result, "12:40"])
    ]
    return [{"role": "assistant", "content": "", "tool_calls": calls}, *results]


def blocks(name: str, arguments: Any, result: str) -> list[Message]:
    use = {"type": "tool_use", "id": "t1", "name": name, "input": arguments}
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": result, "is_error": True}
    return [
        {"role": "assistant", "content": [{"type": "text", "text": "I book it."}, use]},
        {"role": "user", "content": [answer]},
    ]


def legacy(name: str, arguments: Any, result: str) -> list[Message]:
    call = {"name": name, "arguments": json.dumps(arguments)}
    return [
        {"role": "assistant", "content": None, "function_call": call},
        {"role": "function", "name": name, "content": result},
    ]


def items(name: str, arguments: Any, result: str) -> list[Message]:
    return [
        {
            "type": "function_call",
            "call_id": "f1",
            "name": name,
            "arguments": json.dumps(arguments),
        },
        {"type": "function_call_output", "call_id": "f1", "output": result},
    ]


def prose(name: str, arguments: Any, result: str) -> list[Message]:
    return [
        {"role": "assistant", "content": f"Action: {name}[{json.dumps(arguments)}]"},
        {"role": "environment", "content": f"Observation: {result}"},
    ]


def steps(name: str, arguments: Any, result: str) -> list[Message]:
    return [
        {"thought": "Book it.", "action": name, "arguments": arguments},
        {"role": "observation", "content": result},
    ]


def without_result(name: str, arguments: Any, result: str) -> list[Message]:
    return chat(name, arguments, result)[:1]


def remarked(name: str, arguments: Any, result: str) -> list[Message]:
    says = [
        {"role": "assistant", "content": "That did not work."},
        {"role": "user", "content": "Then find another way, please."},
    ]
    return [*chat(name, arguments, result), *says]


def told(name: str, arguments: Any, result: str) -> list[Message]:
    return [{"role": "user", "content": f"{name} has been down since noon."}]


def looked_up_since(name: str, arguments: Any, result: str) -> list[Message]:
    return [*chat(name, arguments, result), *chat("get_tides", {}, "12:40")]


def with_planner(name: str, arguments: Any, result: str) -> list[Message]:
    speaker = {"role": "assistant", "name": "planner", "tool_calls": None, "content": "Book it."}
    return [speaker, *chat(name, arguments, result)]


def users_call(name: str, arguments: Any, result: str) -> list[Message]:
    mine = {"role": "user", "content": "", "tool_calls": [{"id": "u", "name": "toggle_wifi"}]}
    done = {"role": "tool", "tool_call_id": "u", "content": "on"}
    return [*chat(name, arguments, result), mine, done]


Dialect = Callable[[str, Any, str], list[Message]]
DIALECTS: tuple[Dialect, ...] = (
    chat,
    parallel,
    blocks,
    legacy,
    items,
    prose,
    steps,
    without_result,
    remarked,
    told,
    looked_up_since,
    with_planner,
    users_call,
)


def step(name: str, arguments: Mapping[str, Any]) -> Message:
    call = {"type": "function", "function": {"name": name, "arguments": dict(arguments)}}
    return {"role": "assistant", "thought": "", "tool_calls": [call]}


def broken(dialect: Dialect = chat, **fields: Any) -> Row:
    """A case whose ``book_berth`` has failed, and which ``reserve_mooring`` takes over."""
    return {
        "id": "b",
        "split": "step_wise_tool_broken",
        "query": "Book a berth for the Alma, two nights.",
        "tools": [BOOK, RESERVE, TIDES],
        "trajectory_prefix": dialect("book_berth", ARGUMENTS, FAILED),
        "prediction_horizon": 1,
        "broken_tool_name": "book_berth",
        "replacement_tool": RESERVE,
        "ground_truth_steps": [step("reserve_mooring", ARGUMENTS)],
        **fields,
    }


def schema(**fields: Any) -> Row:
    return {**RESERVE, "parameters": fields}


MAP = {"ship": "vessel", "nights": "stay"}
VESSEL = tool("reserve_mooring", "Keeps a place at the quay.")
VESSEL["parameters"] = {
    "type": "object",
    "properties": {
        "vessel": {"type": "string"},
        "stay": {"type": "string"},
        "lights": {"type": "boolean"},
    },
    "required": ["vessel", "stay"],
}
BROKEN: Mapping[str, Row] = {
    **{f"messages as {dialect.__name__}": broken(dialect) for dialect in DIALECTS},
    "no messages": broken(trajectory_prefix=[]),
    "replacement by name": broken(replacement_tool="reserve_mooring"),
    "replacement that is offered later": broken(
        tools=[BOOK, TIDES], ground_truth_steps=[step("get_tides", {})]
    ),
    "the broken tool is gone": broken(tools=[RESERVE, TIDES]),
    "union types": broken(
        replacement_tool=schema(
            type="object",
            properties={"ship": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "n": {}},
            required=["ship", "n"],
        )
    ),
    "types as lists": broken(
        replacement_tool=schema(
            type="object",
            properties={"ship": {"type": ["string", "null"]}, "nights": {"type": ["number"]}},
            required=["ship"],
        )
    ),
    "referenced types": broken(
        replacement_tool=schema(
            type="object",
            properties={"ship": {"$ref": "#/$defs/ship"}, "nights": {"type": "integer"}},
            required=["ship", "nights"],
            **{"$defs": {"ship": {"type": "string"}}},
        )
    ),
    "one object for all": broken(
        replacement_tool=schema(
            type="object", properties={"booking": {"type": "object"}}, required=["booking"]
        )
    ),
    "no schema": broken(replacement_tool={"name": "reserve_mooring", "description": "Keeps it."}),
    "a lookup first": broken(
        prediction_horizon=2,
        ground_truth_steps=[step("get_tides", {}), step("reserve_mooring", ARGUMENTS)],
    ),
    "the user is asked": broken(
        ground_truth_steps=[{"role": "assistant", "thought": "Ask first.", "tool_calls": []}]
    ),
    "a map with another spelling of values": broken(
        tools=[BOOK, VESSEL, TIDES],
        replacement_tool=VESSEL,
        ground_truth_steps=[
            step("reserve_mooring", {"vessel": "Alma", "stay": "2", "lights": True})
        ],
        construction={"parameter_map": MAP},
    ),
    "a map of some parameters": broken(
        tools=[BOOK, VESSEL, TIDES],
        replacement_tool=VESSEL,
        ground_truth_steps=[step("reserve_mooring", {"vessel": "Alma", "stay": "two nights"})],
        construction={"parameter_map": {"ship": "vessel"}},
    ),
    "an empty construction": broken(construction={}),
}


# Distractors --------------------------------------------------------------------------------------


def extraneous(**fields: Any) -> Row:
    return {
        "id": "e",
        "split": "holistic_tool_extraneous",
        "query": "Book a berth for the Alma, two nights.",
        "tools": [BOOK, RESERVE, TIDES],
        "extraneous_tool_names": ["get_tides"],
        "plan": "Book it.",
        "tool_chain": [{"name": "book_berth", "parameter_description": {"ship": "Alma"}}],
        **fields,
    }


SAME = {"description": "Controls the door.", "parameters": {"type": "object", "properties": {}}}
DOORS = [{"name": "open_door", **SAME}, {"name": "close_door", **SAME}]
DISTRACTORS: Mapping[str, Row] = {
    "a plan": extraneous(),
    "one description for two tools": extraneous(
        tools=DOORS, extraneous_tool_names=["close_door"], tool_chain=[{"name": "open_door"}]
    ),
    "tools by name alone": extraneous(tools=None, tool_names=["book_berth", "get_tides"]),
    "no tools at all": extraneous(tools=None),
    "a distractor that failed before": extraneous(
        split="step_wise_tool_extraneous",
        prediction_horizon=1,
        trajectory_prefix=chat("get_tides", {}, FAILED),
        ground_truth_steps=[step("book_berth", ARGUMENTS)],
    ),
    "a user who calls a tool of that name": extraneous(
        split="step_wise_tool_extraneous",
        prediction_horizon=1,
        trajectory_prefix=[{"role": "user", "content": "", "tool_calls": [{"name": "get_tides"}]}],
        ground_truth_steps=[step("book_berth", ARGUMENTS)],
    ),
    "an attachment of that name": extraneous(
        split="step_wise_tool_extraneous",
        prediction_horizon=1,
        trajectory_prefix=[
            {"role": "user", "content": [{"type": "file", "name": "get_tides", "text": "…"}]}
        ],
        ground_truth_steps=[step("book_berth", ARGUMENTS)],
    ),
    "a reference in prose": extraneous(tool_chain=[], plan="Book it; get_tides is of no use."),
}


# No solution --------------------------------------------------------------------------------------


def unsolvable(kind: str, **fields: Any) -> Row:
    return {
        "id": "u",
        "split": "holistic_unsolvable",
        "query": "Book a berth for the ship in the picture, for 3 people.",
        "tools": [BOOK, TIDES],
        "unsolvable_type": kind,
        "plan": "It can't be done.",
        "tool_chain": [],
        **fields,
    }


def bounds(*listed: tuple[str, str, float, str]) -> list[Row]:
    names = ("subject", "kind", "value", "text")
    return [dict(zip(names, each, strict=True)) for each in listed]


def limited(*listed: tuple[str, str, float, str], query: str) -> Row:
    construction = {"bounds": bounds(*listed)}
    return unsolvable("contradictory_constraints", query=query, construction=construction)


UNSOLVABLE: Mapping[str, Row] = {
    "another picture is still there": unsolvable("visual_missing", files=["images/plant.png"]),
    "what can be done is in the reference": unsolvable(
        "tool_removal", tool_chain=[{"name": "get_tides"}], plan="Give the tides; say the rest."
    ),
    "the solution that the twin has": unsolvable(
        "tool_removal",
        tools=[TIDES],
        tool_chain=[{"name": "book_berth"}],
        construction={"removed_tools": ["book_berth"]},
    ),
    "a short value in another sense": unsolvable(
        "information_missing", construction={"removed_value": "3"}
    ),
    "a value that a tool lists": unsolvable(
        "information_missing",
        query="Book a berth.",
        tools=[tool("book_berth", "Books a berth: Alma, Birk or Cora.")],
        construction={"removed_value": "Alma"},
    ),
    "limits of whole persons": limited(
        ("people", "at least", 3.2, "At least 3.2 people"),
        ("people", "at most", 3.8, "at most 3.8"),
        query="At least 3.2 people, at most 3.8.",
    ),
    "limits that meet": limited(
        ("people", "at least", 3, "at least 3"),
        ("people", "at most", 3, "at most 3"),
        query="Take at least 3 and at most 3 of us.",
    ),
    "limits of two things": limited(
        ("price", "at most", 10, "no more than 10 in all"),
        ("tickets at 9 each", "at least", 3, "three tickets at 9"),
        query="I need three tickets at 9, and no more than 10 in all.",
    ),
    "limits in other letters": limited(
        ("people", "at least", 5, "At least  five of us"),
        ("people", "at most", 4, "at most four!"),
        query="at least five of us, at most four",
    ),
}


# Tool banks ---------------------------------------------------------------------------------------


def bank(*costs: Any, chain: tuple[str, ...] = ("find", "book", "pay"), **construction: Any) -> Row:
    """Five tools: three in a row, a composite of two of them, and a trap."""
    names = ("find", "book", "pay", "book_and_pay", "book_in_style")
    tools = [
        {"name": name, "description": f"Does {name}.", **({} if cost is None else {"cost": cost})}
        for name, cost in zip(names, costs, strict=True)
    ]
    claims = {
        "composites": [{"name": "book_and_pay", "replaces": [1, 2]}],
        "traps": ["book_in_style"],
        **construction,
    }
    return {
        "id": "c",
        "planning_regime": "Holistic",
        "query": "Book it.",
        "tools": tools,
        "plan": "Find, book, pay.",
        "tool_chain": [{"name": name} for name in chain],
        "construction": claims,
    }


BANKS: Mapping[str, Row] = {
    "whole costs": bank(2, 3, 3, 4, 9),
    "fractions": bank(0.1, 0.1, 0.2, 0.3, 0.9),
    "all for nothing": bank(0, 0, 0, 0, 0),
    "a tie": bank(2, 3, 3, 6, 6),
    "one cost is not stated": bank(2, 3, 3, 4, None),
    "no costs": bank(None, None, None, None, None),
    "a composite that is no bargain": bank(2, 3, 3, 9, 9),
    "a reference in prose": bank(2, 3, 3, 4, 9, chain=()),
    "a reference with the composite": bank(2, 3, 3, 4, 9, chain=("find", "book_and_pay")),
    "one composite for all": bank(
        2, 3, 3, 4, 9, composites=[{"name": "book_and_pay", "replaces": [0, 1, 2]}]
    ),
    "a trap beside an equal": bank(2, 3, 3, 7, 3, traps=["book_in_style"]),
    "a trap that the reference falls into": bank(
        2, 3, 3, 4, 9, chain=("find", "book_in_style", "pay"), composites=[]
    ),
    "no claims": bank(2, 3, 3, 4, 9, composites=[], traps=[]),
}
CORRECT = {**BROKEN, **DISTRACTORS, **UNSOLVABLE, **BANKS}


@pytest.mark.parametrize("name", CORRECT)
def test_nothing_is_proven_of_a_correct_case(name: str) -> None:
    assert proven(CORRECT[name]) == []


@given(
    row=st.sampled_from([*CORRECT.values()]),
    before=st.sampled_from(DIALECTS),
    as_text=st.booleans(),
    order=st.randoms(use_true_random=False),
)
def test_nothing_is_proven_in_whatever_company(
    row: Row, before: Dialect, as_text: bool, order: Any
) -> None:
    """Earlier messages in another dialect, tools in another order, fields as JSON text."""
    row = dict(row)
    if "trajectory_prefix" in row:
        row["trajectory_prefix"] = [*before("get_tides", {}, "12:40"), *row["trajectory_prefix"]]
    if isinstance(row.get("tools"), list):
        row["tools"] = order.sample(row["tools"], len(row["tools"]))
    if as_text:
        for name in ("tools", "trajectory_prefix", "tool_chain", "ground_truth_steps"):
            if row.get(name):
                row[f"{name}_json"] = json.dumps(row.pop(name))
    assert proven(row) == []
