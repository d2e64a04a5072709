"""Schemas are foreign input: the work on them is bounded, and agrees with a full validator."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from apbjudge.protocols.checks.arguments import STEPS_PER_REPLY
from apbjudge.protocols.checks.schema import MAX_STEPS, UncheckedError, violations
from tests.support.rows import INTEGER, STRING, findings, proven, step, step_row, suspected, tool
from tests.support.worlds import schemas

CALL = "step[0].tool_calls[0]"
PLACE = {"type": "object", "properties": {"town": STRING}, "required": ["town"]}


def _doubling(levels: int, keyword: str, last: Any = INTEGER) -> dict[str, Any]:
    """A schema in which each level refers twice to the next one."""
    levels_of = {
        f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
        for n in range(levels)
    }
    properties = {"v": {"$ref": "#/$defs/d0"}}
    return {"type": "object", "properties": properties, "$defs": {**levels_of, f"d{levels}": last}}


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_references_that_double_at_each_level_are_checked_within_the_bound(keyword: str) -> None:
    (breach,) = violations(_doubling(5, keyword), {"v": "wrong"})
    assert breach.path == ".v"
    for value in (1, "wrong") if keyword == "allOf" else ("wrong",):
        with pytest.raises(UncheckedError, match=f"more than {MAX_STEPS} steps"):
            violations(_doubling(30, keyword), {"v": value})


def test_a_reference_that_leads_to_itself_is_not_checked_and_says_so() -> None:
    for part in ({"$ref": "#/properties/v"}, {"allOf": [{"$ref": "#/properties/v"}]}):
        row = step_row(step(("t", {"v": 1})), tools=[tool("t", {"v": part})])
        (finding,) = findings(row)
        assert (finding.rule, finding.certainty) == ("unchecked-arguments", "suspected")
        assert "a reference leads to itself" in finding.message


TOO_MUCH: dict[str, tuple[Any, Any]] = {
    "a product of schema and value": (
        {"type": "array", "items": {"allOf": [{"maximum": n} for n in range(1000, 2000)]}},
        [[7]] * 200,
    ),
    "a schema of too many parts": (
        {"type": "object", "properties": {f"n{n}": INTEGER for n in range(MAX_STEPS)}},
        {},
    ),
    "a long list of values, each a structure": (
        {"enum": [[n] for n in range(MAX_STEPS + 1)]},
        [-1],
    ),
}


@pytest.mark.parametrize(("part", "value"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_what_takes_too_much_is_not_checked_and_says_so(part: Any, value: Any) -> None:
    row = step_row(step(("t", {"v": value, "w": "x"})), tools=[tool("t", {"v": part, "w": {}})])
    assert proven(row) == []
    unchecked = [f for f in findings(row) if f.rule == "unchecked-arguments"]
    assert [(f.where, f.certainty) for f in unchecked] == [(CALL, "suspected")]
    assert f"more than {MAX_STEPS} steps" in unchecked[0].message


def test_a_recursive_schema_deeper_than_its_bound_is_not_checked_and_says_so() -> None:
    node = {"type": "object", "properties": {"of": {"$ref": "#/$defs/node"}}}
    tools = [tool("t", {"v": {"$ref": "#/$defs/node"}}, **{"$defs": {"node": node}})]
    for depth, rules in ((20, ["wrong-type"]), (100, ["unchecked-arguments"])):
        value: Any = "wrong"
        for _ in range(depth):
            value = {"of": value}
        results = findings(step_row(step(("t", {"v": value})), tools=tools))
        assert [f.rule for f in results if f.code == "E5"] == rules


@pytest.mark.slow
def test_the_calls_of_a_reply_share_a_number_of_steps() -> None:
    part = {"type": "array", "items": {"allOf": [{"maximum": n} for n in range(1000, 2000)]}}
    calls = [("t", {"v": [7] * 15, "n": n}) for n in range(100)]
    row = step_row(step(*calls), tools=[tool("t", {"v": part, "n": INTEGER})])
    unchecked = [f for f in findings(row) if f.rule == "unchecked-arguments"]
    assert 0 < len(unchecked) < 90
    assert f"more than {STEPS_PER_REPLY} steps for one reply" in unchecked[-1].message


_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-10, 20)
    | st.sampled_from([1.0, 2.5, "", "x", "one way", "both", "v2", "long enough"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "day", "name", "größe", "town"]), inner)
    ),
    max_leaves=6,
)


def _for_the_library(schema: Any) -> Any:
    """The same schema where a full validator agrees on what it says."""
    if isinstance(schema, list):
        return [_for_the_library(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    spec = {key: _for_the_library(part) for key, part in schema.items() if key != "nullable"}
    if "oneOf" in spec:
        spec["anyOf"] = spec.pop("oneOf")
    if schema.get("nullable"):
        spec["type"] = [spec["type"], "null"]
    return spec


@settings(max_examples=max(150, settings.default.max_examples))
@given(schema=schemas, value=_values)
def test_what_is_valid_is_what_a_full_validator_calls_valid(schema: Any, value: Any) -> None:
    whole = {"type": "object", "properties": {"v": schema}, "$defs": {"place": PLACE}}
    library = Draft202012Validator(_for_the_library(whole))
    assert (violations(whole, {"v": value}) == ()) is library.is_valid({"v": value})


PREVIOUS = "PREVIOUS_RESULT"
ITEMS = {"type": "array", "items": INTEGER}
STANDS_FOR: list[tuple[Any, Any, bool]] = [
    # what stands around a placeholder has its type, whatever that becomes
    (STRING, [PREVIOUS], False),
    (STRING, {"value": PREVIOUS}, False),
    ({"type": ["string", "integer"]}, ["<offer id>"], False),
    ({"type": "object"}, [PREVIOUS], False),
    ({"enum": ["first", "second"]}, [PREVIOUS], False),
    # a reference in any notation may become what the schema wants
    (STRING, {"$ref": "step1.id"}, True),
    (STRING, {"from_step": 1, "path": "offers[0].id"}, True),
    ({"enum": [["a"], ["b"]]}, [PREVIOUS], True),
    ({"const": {"id": [1]}}, {"id": [PREVIOUS]}, True),
    (ITEMS | {"minItems": 2}, [PREVIOUS], True),
    ({"anyOf": [ITEMS, INTEGER]}, [PREVIOUS, 1], True),
    ({"type": "object", "properties": {"id": INTEGER}}, {"id": {"$ref": "step1"}}, True),
]


@pytest.mark.parametrize(("schema", "value", "is_fine"), STANDS_FOR)
def test_a_placeholder_stands_for_what_the_schema_wants_where_that_can_be(
    schema: Any, value: Any, is_fine: bool
) -> None:
    steps = [step(("u", {})), step(("t", {"v": value}))]
    row = step_row(steps, k=2, tools=[tool("t", {"v": schema}), tool("u")])
    places = [] if is_fine else [("E5", "step[1].tool_calls[0].arguments.v")]
    assert [(code, where) for code, _, where in proven(row)] == places
    assert [rule for _, rule, _ in suspected(row) if rule == "unchecked-arguments"] == []
