"""Correct cases in the dialects that benchmarks are written in: code proves no fault of one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.agents.cases.checks.conditions import CONDITION_CHECKS
from apbjudge.agents.cases.checks.twins import Twins
from apbjudge.agents.cases.findings import CaseFinding

from .checking import call, case_of, said
from .test_checks import CLEAN

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


def changed(rows: list[Row], **changes: Any) -> list[Row]:
    """The rows with other fields in the last one; None for a field that is not there."""
    *before, last = rows
    return [*before, {k: v for k, v in (last | changes).items() if v is not None}]


# A broken tool ------------------------------------------------------------------------------------

(FAILS,) = CLEAN["broken"]()
"""A sailing's space is asked for, by a tool that has just failed."""
OLD, NEW = FAILS["broken_tool_name"], FAILS["replacement_tool"]
CALL = FAILS["trajectory_prefix"][-2]["tool_calls"][0]
ARGUMENTS = CALL["function"]["arguments"]
((OLD_KEY, VALUE),) = ARGUMENTS.items()
NEW_KEY = FAILS["construction"]["parameter_map"][OLD_KEY]
OTHERS = [each for each in FAILS["tools"] if each["name"] not in (OLD, NEW["name"])]
RIGHT = said(call(NEW["name"], **{NEW_KEY: VALUE}))
LOOKUP = call("get_tides", harbour="Vik")


def result(content: Any = "Error 503: unavailable.", role: str = "tool", **fields: Any) -> Message:
    return {"role": role, "content": content, **fields}


def broken(*prefix: Message, **changes: Any) -> list[Row]:
    return changed(
        [FAILS | {"trajectory_prefix": list(prefix) or [said(CALL), result()]}], **changes
    )


BLOCK = {"type": "tool_use", "id": "t1", "name": OLD, "input": ARGUMENTS}
RESULT_BLOCK = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": "no"}

PREFIXES: Mapping[str, list[Message]] = {
    "content blocks": [
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, BLOCK]},
        {"role": "user", "content": [RESULT_BLOCK]},
    ],
    "function parts": [
        {"role": "model", "parts": [{"functionCall": {"name": OLD, "args": ARGUMENTS}}]},
        {"role": "user", "parts": [{"functionResponse": {"response": {"error": "down"}}}]},
    ],
    "plain text": [{"role": "user", "content": f"So far: {OLD} was called and timed out."}],
    "parallel, a message each": [said(CALL), said(LOOKUP), result(), result("2 m, rising")],
    "no result": [said(CALL)],
    "the agent's remark": [said(CALL), result(), {"role": "assistant", "content": "Let me see."}],
    "a list as the result": [said(CALL), result([{"type": "text", "text": "Error 503."}])],
    "a namespace": [said(call(f"functions.{OLD}", **ARGUMENTS)), result()],
    "a result of a user": [said(CALL), result(role="user")],
}
DOUBTFUL: list[list[Message]] = [
    [said(call("use_tool", tool=OLD, arguments=ARGUMENTS)), result()],
    [said(call("space_v1", **ARGUMENTS)), result()],  # the old name of a renamed tool
    [{"role": "system", "content": "Earlier: it failed three times."}, said(LOOKUP), result("2 m")],
    [{"role": "user", "content": "Die Suche ist ausgefallen."}, said(LOOKUP), result("2 m")],
]
"""Here code can only suspect that the broken tool was not called last."""


def pair(ours: Row, theirs: Row, **fields: Any) -> list[Row]:
    """Both tools with these properties, all of them required."""
    schemas = [
        {"type": "object", "properties": properties, "required": [*properties]}
        for properties in (ours, theirs)
    ]
    schemas[1] |= fields
    old, new = (
        {"name": n, "parameters": s} for n, s in zip((OLD, NEW["name"]), schemas, strict=True)
    )
    return broken(tools=[old, new, *OTHERS], replacement_tool=new)


TEXT = {"type": "string"}
BROKEN: Mapping[str, list[Row]] = {
    **{name: broken(*prefix) for name, prefix in PREFIXES.items()},
    "no prefix": broken(trajectory_prefix=[]),
    "no JSON Schema": broken(
        tools=[{"name": OLD, "parameters": {OLD_KEY: "a sailing"}}, {"name": NEW["name"]}]
    ),
    "tools in the system prompt": broken(
        tools=[], system_prompt=f"Tools: {OLD}({OLD_KEY}), {NEW['name']}({NEW_KEY})."
    ),
    "a list of types": pair(
        {OLD_KEY: {"type": ["string", "null"]}}, {NEW_KEY: {"type": ["integer", "string"]}}
    ),
    "oneOf around everything": pair(
        {OLD_KEY: TEXT}, {"flag": {"type": "boolean"}}, required=[], oneOf=[{"required": [NEW_KEY]}]
    ),
    "the replacement by its name": broken(replacement_tool=NEW["name"]),
    "no replacement": broken(replacement_tool=None),
    "a constant beside": broken(
        ground_truth_steps=[said(call(NEW["name"], **{NEW_KEY: VALUE}, unit="metric"))]
    ),
    "other types of values": broken(
        ground_truth_steps=[said(call(NEW["name"], **{NEW_KEY: [VALUE]}))]
    ),
    "the replacement after a look-up": broken(
        prediction_horizon=2, ground_truth_steps=[said(LOOKUP), RIGHT]
    ),
    "no reference": broken(ground_truth_steps=None),
}


# Distractors and what can't be solved -------------------------------------------------------------

PLAN = CLEAN["extraneous"]()[-1:]
TALK = {"role": "user", "name": "walk_dog", "content": "Hello.", "tool_calls": None}
TOOLS = [each["name"] for each in PLAN[0]["tools"]]
DISTRACTORS: Mapping[str, list[Row]] = {
    "in a namespace": changed(
        PLAN, tools=[each | {"name": f"functions.{each['name']}"} for each in PLAN[0]["tools"]]
    ),
    "in the system prompt": changed(PLAN, tools=[], system_prompt=f"Tools: {', '.join(TOOLS)}"),
    "a speaker of this name": broken(
        TALK,
        {"role": "assistant", "content": [{"type": "document", "name": "walk_dog", "text": "x"}]},
        split="step_wise_tool_extraneous",
        tools=[*FAILS["tools"], {"name": "walk_dog"}],
        broken_tool_name=None,
        replacement_tool=None,
        construction=None,
        extraneous_tool_names=["walk_dog"],
        ground_truth_steps=[said(CALL), result("ok", name="walk_dog")],
        reference_remaining_steps=[TALK, result("ok", name="walk_dog")],
    ),
}

SOLVABLE, REMOVED = CLEAN["removal"]()
EXCLUDING = CLEAN["contradiction"]()
CLAIMS = REMOVED["construction"]
UNSOLVABLE: Mapping[str, list[Row]] = {
    "the names of all tools are listed": changed(
        [SOLVABLE, REMOVED], tool_names=[each["name"] for each in SOLVABLE["tools"]]
    ),
    "limits in other marks and spaces": changed(
        EXCLUDING,
        query=EXCLUDING[1]["query"].replace(" I need", "\n «I  need").replace("most.", "most!"),
    ),
    "the twin after it": [REMOVED, SOLVABLE],
    "the twin with its tools in another order": [
        SOLVABLE | {"tools": SOLVABLE["tools"][::-1]},
        REMOVED,
    ],
    "the twin by the id of its case": [
        SOLVABLE | {"id": "p1-row", "case_id": "p1"},
        REMOVED | {"case_id": "p1", "construction": CLAIMS | {"twin": "p1"}},
    ],
    "the twin as a case of steps": [
        CLEAN["steps"]()[0] | {"id": SOLVABLE["id"]},
        REMOVED,
    ],
    "no twin": [REMOVED | {"construction": CLAIMS | {"twin": None}}],
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


REWRITES: tuple[Callable[[Row], Row], ...] = (
    of_tools(lambda tools: tools[::-1]),
    of_tools(lambda tools: [{"type": "function", "function": each} for each in tools]),
    of_tools(lambda tools: [*tools, {"name": "ring_bell", "description": "Rings.", "cost": 4}]),
    of_prefix(lambda prefix: [said(LOOKUP), result("2 m"), *prefix]),
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
    prefix=st.sampled_from([*PREFIXES.values(), *DOUBTFUL]),
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
    findings = found(map(as_texts, rows) if is_text else rows)
    assert [(f.check, f.message) for f in findings if f.certainty == "proven"] == []
