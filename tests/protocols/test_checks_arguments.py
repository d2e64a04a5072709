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
        ({"origin": "from the query"}, [("missing-parameter", "tool_chain[0]")]),
        ({"origin": 1, "day": None, "hue": "x"}, [("unknown-parameter", "tool_chain[0].hue")]),
        ({"origin": "a", "day": "b", "Day": "c"}, [("unknown-parameter", "tool_chain[0].Day")]),
        (
            {"origin": "a", "date": "b"},
            [("missing-parameter", "tool_chain[0]"), ("unknown-parameter", "tool_chain[0].date")],
        ),
    ],
)
def test_in_a_plan_parameter_names_are_proven_wrong(
    arguments: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    row = plan_row(plan(("find_trains", arguments)))
    assert proven(row) == [("E5", rule, where) for rule, where in expected]


@pytest.mark.parametrize(
    "arguments",
    [
        {"origin": "where the traveller lives", "day": "taken from the query"},
        {"origin": ["any", "shape"], "day": {"of": "description"}},
        {"origin": None, "day": 3, "changes": "none at all"},
        "the town and the day of the query",
        None,
    ],
)
def test_in_a_plan_values_are_described_and_prove_nothing(arguments: Any) -> None:
    assert proven(plan_row(plan(("find_trains", arguments)))) == []


def test_a_plan_that_names_no_parameters_is_only_suspected() -> None:
    row = plan_row({"plan": "p", "tool_chain": [{"name": "find_trains", "reason": "r"}]})
    assert proven(row) == []
    assert suspected(row) == [("E5", "parameters-not-given", "tool_chain[0]")]


SEAT_FAULTS = {
    "type": ({"seats": "2"}, "wrong-type", ".arguments.seats"),
    "bool is no integer": ({"seats": True}, "wrong-type", ".arguments.seats"),
    "fraction is no integer": ({"seats": 1.5}, "wrong-type", ".arguments.seats"),
    "enum": ({"travel_class": "third"}, "not-allowed-value", ".arguments.travel_class"),
    "enum letter case": ({"travel_class": "First"}, "not-allowed-value", ".arguments.travel_class"),
    "unknown": ({"window": True}, "unknown-parameter", ".window"),
    "object as text": ({"passenger": "Ann"}, "wrong-type", ".arguments.passenger"),
    "nested type": (
        {"passenger": {"name": "Ann", "age": "9"}},
        "wrong-type",
        ".arguments.passenger.age",
    ),
    "nested missing": ({"passenger": {"age": 9}}, "missing-parameter", ".arguments.passenger"),
    "nested unknown": (
        {"passenger": {"name": "Ann", "hat": 1}},
        "unknown-parameter",
        ".arguments.passenger",
    ),
}


@pytest.mark.parametrize(("more", "rule", "where"), SEAT_FAULTS.values(), ids=SEAT_FAULTS)
def test_in_a_step_concrete_arguments_are_held_against_the_schema(
    more: dict[str, Any], rule: str, where: str
) -> None:
    row = step_row(step(("reserve_seat", {"offer_id": "RJ-77", **more})))
    assert proven(row) == [("E5", rule, CALL + where)]


@pytest.mark.parametrize("arguments", ["in words", "[1]", "7", [1], 7, '{"offer_id": ', "<id>5"])
def test_arguments_that_cannot_be_read_are_left_unchecked(arguments: Any) -> None:
    row = step_row(step(("reserve_seat", arguments)))
    assert proven(row) == []
    assert ("E5", "unchecked-arguments", CALL) in suspected(row)


@pytest.mark.parametrize("arguments", [{}, None, "", "  ", "{}"])
def test_a_required_parameter_is_missing_in_whatever_way_arguments_are_left_out(
    arguments: Any,
) -> None:
    row = step_row(step(("reserve_seat", arguments)))
    assert proven(row) == [("E5", "missing-parameter", CALL)]


@pytest.mark.parametrize("value", [None, 5, ["RJ-77"], {"id": "RJ-77"}])
def test_a_required_value_of_a_wrong_type_is_proven_null_included(value: Any) -> None:
    row = step_row(step(("reserve_seat", {"offer_id": value})))
    assert proven(row) == [("E5", "wrong-type", f"{CALL}.arguments.offer_id")]


@pytest.mark.parametrize("name", ["seats", "travel_class", "passenger"])
def test_null_for_an_optional_parameter_is_only_suspected(name: str) -> None:
    row = step_row(step(("reserve_seat", {"offer_id": "RJ-77", name: None})))
    assert proven(row) == []
    assert {(code, rule) for code, rule, _ in suspected(row)} == {("E5", "null-optional")}


INNOCENT_VALUES = {
    "integral float": (INTEGER, 3.0),
    "large integer": (INTEGER, 2**62),
    "integer as number": ({"type": "number"}, 3),
    "one of several types": ({"type": ["string", "integer"]}, 3),
    "nullable": ({"type": "string", "nullable": True}, None),
    "no type": ({}, ["anything"]),
    "open object": ({"type": "object", "properties": {"a": STRING}}, {"b": 1}),
    "additional by schema": ({"type": "object", "additionalProperties": INTEGER}, {"b": 1}),
    "empty enum match": ({"enum": [None, 1, "x"]}, None),
    "pattern": ({"type": "string", "pattern": "^[0-9]+$"}, "seven"),
    "format": ({"type": "string", "format": "date"}, "tomorrow"),
    "not": ({"not": {"type": "string"}}, "text"),
    "one of, twice true": ({"oneOf": [{"type": "number"}, INTEGER]}, 3),
    "any of": ({"anyOf": [STRING, {"type": "null"}]}, None),
    "conditional": ({"if": STRING, "then": {"maxLength": 1}}, "longer"),
    "length in characters": ({"type": "string", "maxLength": 2}, "žš"),
    "at the limit": ({"type": "integer", "minimum": 1, "maximum": 1}, 1),
    "local reference": ({"$ref": "#/$defs/a"}, "x"),
    "tuple": ({"type": "array", "prefixItems": [STRING, INTEGER]}, ["a", 1, "more"]),
    "boolean schema": (True, 1),
}


@pytest.mark.parametrize(("schema", "value"), INNOCENT_VALUES.values(), ids=INNOCENT_VALUES)
def test_a_value_that_may_be_meant_proves_nothing(schema: Any, value: Any) -> None:
    tools = [tool("t", {"v": schema}, ("v",), **{"$defs": {"a": STRING}})]
    assert proven(step_row(step(("t", {"v": value})), tools=tools)) == []


PEOPLE = {"type": "array", "items": {"type": "object", "properties": {"age": INTEGER}}}
LIMITS = {
    "minimum": ({"type": "integer", "minimum": 1}, 0, "schema-violation", ""),
    "exclusive maximum": ({"type": "number", "exclusiveMaximum": 5}, 5, "schema-violation", ""),
    "length": ({"type": "string", "maxLength": 2}, "abc", "schema-violation", ""),
    "items": ({"type": "array", "minItems": 1}, [], "schema-violation", ""),
    "any of": ({"anyOf": [STRING, {"type": "null"}]}, 4, "schema-violation", ""),
    "one of": ({"oneOf": [STRING, {"type": "null"}]}, 4, "schema-violation", ""),
    "constant": ({"const": 1}, 2, "not-allowed-value", ""),
    "entry of a list": (PEOPLE, [{"age": 1}, {"age": "old"}], "wrong-type", "[1].age"),
}


@pytest.mark.parametrize(("schema", "value", "rule", "place"), LIMITS.values(), ids=LIMITS)
def test_a_limit_of_the_schema_is_proven_broken_at_its_place(
    schema: Any, value: Any, rule: str, place: str
) -> None:
    row = step_row(step(("t", {"v": value})), tools=[tool("t", {"v": schema})])
    assert proven(row) == [("E5", rule, f"{CALL}.arguments.v{place}")]


PLACEHOLDERS = [
    "PREVIOUS_RESULT",
    "PREVIOUS_RESULT.offers[0].id",
    "<PREVIOUS_STEP_OUTPUT>",
    "$find_trains.offer",
    "${step_1.offer}",
    "{{find_trains.offer}}",
    "<offer id>",
    "OFFER_ID_OF_STEP_1",
    "result of step 1",
    "the number from the search",
    "step_1.offer",
    "find_trains.offer",
    "find_trains[0].offer",
    "#E1",
]


@pytest.mark.parametrize("value", PLACEHOLDERS)
def test_from_the_second_step_on_a_placeholder_may_stand_for_any_type(value: str) -> None:
    tools = [*TOOLS, tool("t", {"n": INTEGER, "kind": {"enum": ["a", "b"]}}, ("n",))]
    steps = [step(FIND_OK), step(("t", {"n": value, "kind": value}))]
    assert proven(step_row(steps, k=2, tools=tools)) == []


OPTIONAL_OBJECT = {
    "anyOf": [
        {"type": "object", "properties": {"id": INTEGER}, "required": ["id"]},
        {"type": "null"},
    ]
}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (OPTIONAL_OBJECT, {"id": "PREVIOUS_RESULT"}),
        ({"type": "array", "items": INTEGER}, ["PREVIOUS_RESULT"]),
        ({"type": "object", "properties": {"id": INTEGER}}, {"id": "PREVIOUS_RESULT"}),
        ({"anyOf": [{"type": "array", "items": INTEGER}, INTEGER]}, ["PREVIOUS_RESULT", 1]),
    ],
)
def test_a_placeholder_may_stand_inside_a_structure(schema: Any, value: Any) -> None:
    steps = [step(FIND_OK), step(("t", {"v": value}))]
    assert proven(step_row(steps, k=2, tools=[*TOOLS, tool("t", {"v": schema})])) == []


@pytest.mark.parametrize("value", ["", "TBD", "n/a", "…", "unknown", "  "])
def test_a_stopgap_is_suspected_and_never_proven(value: str) -> None:
    row = step_row(step(("reserve_seat", {"offer_id": value})))
    assert proven(row) == []
    assert suspected(row) == [("E5", "vague-value", f"{CALL}.arguments.offer_id")]
