"""Parameters against JSON Schema: names in plans, names and concrete values in steps."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.rows import (
    FIND_OK,
    INTEGER,
    STRING,
    TOOLS,
    plan,
    plan_row,
    proven,
    step,
    step_row,
    suspected,
    tool,
)

CALL = "step[0].tool_calls[0]"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, [("missing-parameter", "tool_chain[0]"), ("missing-parameter", "tool_chain[0]")]),
        (
            {"origin": "a", "date": "b"},
            [("missing-parameter", "tool_chain[0]"), ("unknown-parameter", "tool_chain[0].date")],
        ),
        # values are described and prove nothing
        ({"origin": ["any", "shape"], "day": {"of": "description"}}, []),
        ({"origin": None, "day": 3, "changes": "none at all"}, []),
        ("the town and the day of the query", []),
    ],
)
def test_in_a_plan_parameter_names_are_proven_wrong(
    arguments: Any, expected: list[tuple[str, str]]
) -> None:
    row = plan_row(plan(("find_trains", arguments)))
    assert proven(row) == [("E5", rule, where) for rule, where in expected]


def test_a_plan_that_names_no_parameters_is_only_suspected() -> None:
    row = plan_row({"plan": "p", "tool_chain": [{"name": "find_trains", "reason": "r"}]})
    assert proven(row) == []
    assert suspected(row) == [("E5", "parameters-not-given", "tool_chain[0]")]


def _with(**more: Any) -> dict[str, Any]:
    return {"offer_id": "RJ-77", **more}


WRONG: dict[str, tuple[Any, str, str]] = {
    "type": (_with(seats="2"), "wrong-type", ".arguments.seats"),
    "bool is no integer": (_with(seats=True), "wrong-type", ".arguments.seats"),
    "enum": (_with(travel_class="First"), "not-allowed-value", ".arguments.travel_class"),
    "unknown": (_with(window=True), "unknown-parameter", ".window"),
    "nested type": (
        _with(passenger={"name": "Ann", "age": "9"}),
        "wrong-type",
        ".arguments.passenger.age",
    ),
    "nested missing": (_with(passenger={"age": 9}), "missing-parameter", ".arguments.passenger"),
    "nested unknown": (
        _with(passenger={"name": "Ann", "hat": 1}),
        "unknown-parameter",
        ".arguments.passenger",
    ),
    "null where it is required": ({"offer_id": None}, "wrong-type", ".arguments.offer_id"),
    "missing": ({}, "missing-parameter", ""),
    "no arguments": (None, "missing-parameter", ""),
    "empty text": (" ", "missing-parameter", ""),
}


@pytest.mark.parametrize(("arguments", "rule", "where"), WRONG.values(), ids=WRONG)
def test_in_a_step_concrete_arguments_are_held_against_the_schema(
    arguments: Any, rule: str, where: str
) -> None:
    assert proven(step_row(step(("reserve_seat", arguments)))) == [("E5", rule, CALL + where)]


@pytest.mark.parametrize(
    ("arguments", "rule", "where"),
    [
        (_with(seats=None), "null-optional", ".arguments.seats"),
        (_with(passenger=None), "null-optional", ".arguments.passenger"),
        *(({"offer_id": gap}, "vague-value", ".arguments.offer_id") for gap in ("", "TBD", "…")),
        *((said, "unchecked-arguments", "") for said in ("in words", 7, '{"offer_id": ', "<id>5")),
    ],
)
def test_what_can_be_meant_or_not_be_read_is_only_suspected(
    arguments: Any, rule: str, where: str
) -> None:
    row = step_row(step(("reserve_seat", arguments)))
    assert proven(row) == []
    assert ("E5", rule, CALL + where) in suspected(row)


PEOPLE = {"type": "array", "items": {"type": "object", "properties": {"age": INTEGER}}}
VALUES: dict[str, tuple[Any, Any, list[tuple[str, str]]]] = {
    "integral float": (INTEGER, 3.0, []),
    "one of several types": ({"type": ["string", "integer"]}, 3, []),
    "nullable": ({"type": "string", "nullable": True}, None, []),
    "no type": ({}, ["anything"], []),
    "additional by schema": ({"type": "object", "additionalProperties": INTEGER}, {"b": 1}, []),
    "pattern": ({"type": "string", "pattern": "^[0-9]+$"}, "seven", []),
    "format": ({"type": "string", "format": "date"}, "tomorrow", []),
    "not": ({"not": {"type": "string"}}, "text", []),
    "one of, twice true": ({"oneOf": [{"type": "number"}, INTEGER]}, 3, []),
    "conditional": ({"if": STRING, "then": {"maxLength": 1}}, "longer", []),
    "at the limit": ({"type": "integer", "minimum": 1, "maximum": 1}, 1, []),
    "local reference": ({"$ref": "#/$defs/a"}, "x", []),
    "tuple": ({"type": "array", "prefixItems": [STRING, INTEGER]}, ["a", 1, "more"], []),
    "over a limit": ({"type": "number", "exclusiveMaximum": 5}, 5, [("schema-violation", "")]),
    "one of": ({"oneOf": [STRING, {"type": "null"}]}, 4, [("schema-violation", "")]),
    "constant": ({"const": 1}, 2, [("not-allowed-value", "")]),
    "entry of a list": (PEOPLE, [{"age": 1}, {"age": "old"}], [("wrong-type", "[1].age")]),
}


@pytest.mark.parametrize(("schema", "value", "expected"), VALUES.values(), ids=VALUES)
def test_a_value_that_the_schema_forbids_is_proven_at_its_place_and_no_other(
    schema: Any, value: Any, expected: list[tuple[str, str]]
) -> None:
    tools = [tool("t", {"v": schema}, ("v",), **{"$defs": {"a": STRING}})]
    found = [("E5", rule, f"{CALL}.arguments.v{place}") for rule, place in expected]
    assert proven(step_row(step(("t", {"v": value})), tools=tools)) == found


PLACEHOLDERS = [
    "PREVIOUS_RESULT",
    "<PREVIOUS_STEP_OUTPUT>",
    "{{find_trains.offer}}",
    "<offer id>",
    "OFFER_ID_OF_STEP_1",
    "result of step 1",
    "the number from the search",
    "find_trains[0].offer",
    "#E1",
]


@pytest.mark.parametrize("value", PLACEHOLDERS)
def test_from_the_second_step_on_a_placeholder_may_stand_for_any_type(value: str) -> None:
    tools = [*TOOLS, tool("t", {"n": INTEGER, "kind": {"enum": ["a", "b"]}}, ("n",))]
    steps = [step(FIND_OK), step(("t", {"n": value, "kind": value}))]
    assert proven(step_row(steps, k=2, tools=tools)) == []
