"""Rows, replies and tools for tests, and the findings that a row leads to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from apbjudge.protocols import AUTO, Protocol, get_protocol, protocol_of
from apbjudge.records import Finding, Item, Row
from apbjudge.rubrics import load_rubric

Call = tuple[str, Any]
STRING = {"type": "string"}
INTEGER = {"type": "integer"}


def tool(
    name: str,
    properties: Mapping[str, Any] | None = None,
    required: tuple[str, ...] = (),
    **more: Any,
) -> dict[str, Any]:
    """A tool with a JSON Schema; ``more`` goes into the schema."""
    schema = {"type": "object", "properties": properties or {}, "required": list(required), **more}
    return {"name": name, "description": f"Does {name}.", "parameters": schema}


FIND = tool("find_trains", {"origin": STRING, "day": STRING, "changes": INTEGER}, ("origin", "day"))
SEAT = tool(
    "reserve_seat",
    {
        "offer_id": STRING,
        "seats": INTEGER,
        "travel_class": {"type": "string", "enum": ["first", "second"]},
        "passenger": {
            "type": "object",
            "properties": {"name": STRING, "age": INTEGER},
            "required": ["name"],
            "additionalProperties": False,
        },
    },
    ("offer_id",),
)
MAIL = tool("send_mail", {"to": STRING, "body": STRING}, ("to", "body"))
TOOLS = [FIND, SEAT, MAIL]
FIND_OK: Call = ("find_trains", {"origin": "Trieste", "day": "2026-05-14"})
SEAT_OK: Call = ("reserve_seat", {"offer_id": "RJ-77"})
MAIL_OK: Call = ("send_mail", {"to": "desk", "body": "Seats are held."})


def plan(*calls: Call, text: str = "First find, then reserve.") -> dict[str, Any]:
    """A whole plan as a tested model returns it."""
    chain = [{"name": n, "parameter_description": a, "reason": "needed"} for n, a in calls]
    return {"plan": text, "tool_chain": chain}


def step(*calls: Call, thought: str = "Go on.") -> dict[str, Any]:
    """One assistant step with its calls."""
    called = [{"type": "function", "function": {"name": n, "arguments": a}} for n, a in calls]
    return {"role": "assistant", "thought": thought, "tool_calls": called}


def plan_row(reply: object, **fields: Any) -> dict[str, Any]:
    """A holistic row with plain nested fields; a reply that is no string is written as JSON."""
    return _row(reply) | {"split": "holistic_planning"} | fields


def step_row(reply: object, k: int = 1, **fields: Any) -> dict[str, Any]:
    """A step-wise row with plain nested fields."""
    return _row(reply) | {"split": "step_wise_planning", "prediction_horizon": k} | fields


def _row(reply: object) -> dict[str, Any]:
    return {
        "id": "case-1",
        "tested_model": "alder",
        "query": "Get me to Ljubljana by ten.",
        "tools": TOOLS,
        "model_response": reply if isinstance(reply, str) else json.dumps(reply),
    }


NESTED = (
    "tools tool_names extraneous_tool_names tool_chain trajectory_prefix ground_truth_steps "
    "reference_remaining_steps replacement_tool"
).split()


def published(row: Mapping[str, Any]) -> dict[str, Any]:
    """The same row as it is published: nested fields as JSON strings in ``*_json``."""
    done = {name: value for name, value in row.items() if name not in NESTED}
    return done | {f"{name}_json": json.dumps(row[name]) for name in NESTED if name in row}


def read(row: Mapping[str, Any]) -> Item:
    """The row's item."""
    return Row(row, 1).to_item()


def findings(
    row: Mapping[str, Any], protocol: str = AUTO, rubric: str | None = None
) -> tuple[Finding, ...]:
    """What code finds in a row, as a run would."""
    item = read(row)
    chosen: Protocol = protocol_of(item) if protocol == AUTO else get_protocol(protocol)
    chosen.admit(item)
    override = load_rubric(rubric) if rubric else None
    return chosen.find(item, chosen.rubric_for(item, override))


def proven(row: Mapping[str, Any], **options: Any) -> list[tuple[str | None, str, str]]:
    """Code, rule and place of each proven finding."""
    return _brief(row, "proven", options)


def suspected(row: Mapping[str, Any], **options: Any) -> list[tuple[str | None, str, str]]:
    """Code, rule and place of each suspected finding."""
    return _brief(row, "suspected", options)


def _brief(
    row: Mapping[str, Any], certainty: str, options: dict[str, Any]
) -> list[tuple[str | None, str, str]]:
    result = findings(row, **options)
    return [(f.code, f.rule, f.where) for f in result if f.certainty == certainty]
