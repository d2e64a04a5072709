"""Small cases for tests of audits, and the bases of all example cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from apbjudge.audits.design import FULL, AuditDesign, design_audit
from apbjudge.audits.perturbations.bases import Base, Origin, find_bases
from apbjudge.audits.perturbations.parts import ReplyParts
from apbjudge.audits.variants import Truth, Variant
from apbjudge.judge import ItemSource, JudgeTask
from apbjudge.protocols import protocol_of
from apbjudge.records import Row, read_labels

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("holistic", "step_wise", "tool_broken", "unsolvable", "efficiency", "tool_extraneous")


def tool(name: str, description: str, required: Mapping[str, Any], **optional: Any) -> Any:
    """A tool with a JSON Schema; a parameter is given by its type or its whole schema."""
    given = {**required, **optional}
    properties = {
        key: {"type": spec} if isinstance(spec, str) else spec for key, spec in given.items()
    }
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"name": name, "description": description, "parameters": schema}


TOOLS = (
    tool("find_rooms", "Lists free rooms of a house.", {"house": "string", "day": "string"}),
    tool("find_trains", "Lists trains to a town.", {"town": "string", "day": "string"}),
    tool(
        "book_room",
        "Books a room.",
        {
            "room_id": {"type": "string", "description": "Room id from find_rooms"},
            "guests": "integer",
        },
        board={"type": "string", "enum": ["breakfast", "half", "none"]},
    ),
    tool("send_note", "Sends a note to the guest.", {"text": "string"}),
    tool("tide_table", "Shows high water at a harbour.", {"harbour": "string"}),
)
QUERY = (
    "Please book a room with breakfast at Villa Rosa in Trieste for 4 June 2026, find a train to "
    "Trieste for that day, and send the guest a note. The room may cost 120 euros at most."
)


def call(name: str, reason: str = "", /, **arguments: Any) -> dict[str, Any]:
    """A call of a plan."""
    return {"name": name, "parameter_description": arguments, "reason": reason}


CHAIN = (
    call("find_rooms", "Free rooms and prices.", house="Villa Rosa", day="2026-06-04"),
    call("find_trains", "Trains that arrive in time.", town="Trieste", day="2026-06-04"),
    call("book_room", "Fixes it.", room_id="id of the cheapest room", guests=2, board="breakfast"),
    call("send_note", "The guest knows.", text="booking from step 3, at most 120 euros"),
)


def plan_row(**fields: Any) -> dict[str, Any]:
    """A row with a whole plan; fields replace those of the usual one."""
    return {
        "id": "p1",
        "planning_regime": "Holistic",
        "query": QUERY,
        "tools": list(TOOLS),
        "plan": "Find the rooms, find the trains, book the cheapest room and send the note.",
        "tool_chain": list(CHAIN),
        "tested_model": "m",
        "model_response": "",
    } | fields


def message(name: str, thought: str = "", /, **arguments: Any) -> dict[str, Any]:
    """A step with one call."""
    made = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "thought": thought, "tool_calls": [made]}


ANSWERED = (
    message("find_rooms", "Which rooms are free?", house="Villa Rosa", day="2026-06-04"),
    {"role": "tool", "name": "find_rooms", "content": '[{"room_id": "R-71", "eur": 88}]'},
)
NEXT = message("book_room", "R-71 fits.", room_id="R-71", guests=2, board="breakfast")


def steps_row(*steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A row with next steps after one answered lookup."""
    steps = steps or (NEXT,)
    return {
        "id": "s1",
        "planning_regime": "Step-wise",
        "query": QUERY,
        "tools": list(TOOLS),
        "trajectory_prefix": list(ANSWERED),
        "prediction_horizon": len(steps),
        "ground_truth_steps": list(steps),
        "tested_model": "m",
        "model_response": "",
    } | fields


FAILED = (ANSWERED[0], {"role": "tool", "name": "find_rooms", "content": "Error 503: no answer"})


def broken_row(**fields: Any) -> dict[str, Any]:
    """A row after a broken tool, with a replacement among the tools."""
    other = tool("room_search", "Lists rooms of a house.", {"house": "string", "day": "string"})
    result = message("room_search", "Another search.", house="Villa Rosa", day="2026-06-04")
    case = {
        "tools": [*TOOLS, other],
        "trajectory_prefix": list(FAILED),
        "broken_tool_name": "find_rooms",
        "replacement_tool": other,
    }
    return steps_row(result, id="b1", **case) | fields


REFUSAL = '{"status": "REJECT", "reason": "The day is not given. Which day is it?"}'


def unsolvable_row(**fields: Any) -> dict[str, Any]:
    """A row whose case can't be solved, rightly declined."""
    return {
        "id": "u1",
        "planning_regime": "Holistic",
        "query": "Please book the usual room for the usual guest.",
        "tools": list(TOOLS),
        "unsolvable_type": "information_missing",
        "tested_model": "m",
        "model_response": REFUSAL,
    } | fields


def base_of(row: Mapping[str, Any]) -> Base:
    """The base of a row: its reference where it has one, else its reply."""
    item = Row(row, 1).to_item()
    protocol = protocol_of(item)
    task = JudgeTask(item, protocol, protocol.rubric_for(item), (), b"", 0)
    result = find_bases([task], {(item.item_id, item.tested_model)}).bases
    if not result:
        raise AssertionError(f"no base in {row['id']}")
    return result[0]


def with_reply(row: Mapping[str, Any], *, origin: Origin = "reference", **changes: Any) -> Base:
    """A base of a row's reply, some of its fields changed; None takes a field out."""
    values = {key: value for key, value in {**row, **changes}.items() if value is not None}
    item = Row(values, 1).to_item()
    parts = ReplyParts.of_prediction(item)
    assert parts is not None
    protocol = protocol_of(item)
    item = Row(values | {"model_response": parts.text}, 1).to_item()
    return Base(
        name=item.item_id,
        item=item,
        parts=parts,
        origin=origin,
        protocol=protocol,
        rubric=protocol.rubric_for(item),
    )


def fault_of(base: Base, *, reply: ReplyParts | str | None = None) -> Variant:
    """A variant with a fault that no code proves: its first call, if it has one, comes again."""
    if reply is None:
        reply = base.parts.with_calls(0, *base.parts.calls[:1] * 2) if base.parts.calls else None
    truth = Truth(is_correct=False, codes=frozenset({"E4"}), also=frozenset({"E2"}))
    what = "the first call comes twice"
    return base.derived("fault", "twice", what=what, truth=truth, reply=reply)


def calls_of(base: Base, variant: Variant) -> list[tuple[str, Any]]:
    """Names and arguments of a variant's calls."""
    return [(call.name, call.arguments) for call in base.read(variant).prediction.calls]


def proven(base: Base, variant: Variant) -> list[tuple[str, str | None, str]]:
    """What code proves of a variant."""
    result = base.findings(variant)
    return sorted((f.rule, str(f.code), f.where) for f in result if f.certainty == "proven")


@cache
def example_tasks(name: str) -> tuple[JudgeTask, ...]:
    """The rows of one example file."""
    entries = ItemSource(EXAMPLES / f"{name}.jsonl")
    return tuple(entry for entry in entries if isinstance(entry, JudgeTask))


@cache
def example_bases(*, labelled: bool = False) -> tuple[Base, ...]:
    """Bases of all examples: passed refusals and references, or first whatever humans passed."""
    result: list[Base] = []
    for name in NAMES:
        labels = read_labels(EXAMPLES / "labels" / f"{name}.jsonl", bad=print)
        passed = {(x.item_id, x.tested_model) for x in labels if x.is_correct}
        known = passed if labelled or name == "unsolvable" else None
        result += find_bases(example_tasks(name), known).bases
    return tuple(result)


SMALL = replace(FULL.for_bases(2), faults=4, shown=3)


@cache
def plans() -> tuple[Base, ...]:
    """Bases with a whole plan and codes."""
    result = [base for base in example_bases() if base.protocol.name == "holistic"]
    return tuple(result[:8])


@cache
def small(seed: int = 1, *, blind: bool = False) -> AuditDesign:
    """A plan with two of them."""
    return design_audit(plans(), (), SMALL, seed=seed, blind=blind)
