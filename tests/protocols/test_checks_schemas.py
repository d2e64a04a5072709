"""Tool schemas that are open, odd, broken or hostile prove nothing that is not so."""

from __future__ import annotations

import json
import socket
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge import grade
from tests.support.rows import (
    INTEGER,
    STRING,
    findings,
    plan,
    plan_row,
    proven,
    step,
    step_row,
    tool,
)

OPEN_SCHEMAS: dict[str, dict[str, Any]] = {
    "additional allowed": {"additionalProperties": True},
    "additional by schema": {"additionalProperties": STRING},
    "pattern properties": {"patternProperties": {"^x": STRING}},
    "all of": {"allOf": [{"properties": {"extra": STRING}}]},
    "any of": {"anyOf": [{"required": ["a"]}, {"required": ["extra"]}]},
    "reference": {"$ref": "#/$defs/more", "$defs": {"more": {"properties": {"extra": STRING}}}},
    "dependent": {"dependentSchemas": {"a": {"properties": {"extra": STRING}}}},
    "required but not described": {"required": ["extra"]},
}


@pytest.mark.parametrize("more", OPEN_SCHEMAS.values(), ids=OPEN_SCHEMAS)
def test_a_schema_that_lets_further_names_in_makes_no_name_unknown(more: dict[str, Any]) -> None:
    spec = tool("t", {"a": STRING})
    spec["parameters"] |= more
    call = ("t", {"a": "x", "extra": "y"})
    assert proven(plan_row(plan(call), tools=[spec])) == []
    assert proven(step_row(step(call), tools=[spec])) == []


NO_SCHEMA: dict[str, Any] = {
    "empty": {},
    "names to prose": {"city": "where to", "day": "when"},
    "names to specs, one named properties": {
        "kind": {"type": "string"},
        "properties": {"type": "object"},
    },
    "prose": "a city and a day",
    "array schema": {"type": "array", "items": STRING, "properties": {}},
    "properties is a list": {"type": "object", "properties": ["city"], "required": ["city"]},
}


@pytest.mark.parametrize("parameters", NO_SCHEMA.values(), ids=NO_SCHEMA)
def test_what_is_no_json_schema_proves_nothing(parameters: Any) -> None:
    tools = [{"name": "t", "parameters": parameters}]
    for arguments in ({}, {"anything": 1}, None):
        assert proven(plan_row(plan(("t", arguments)), tools=tools)) == []
        assert proven(step_row(step(("t", arguments)), tools=tools)) == []


ODD_PARTS: dict[str, Any] = {
    "unknown type word": {"type": "file"},
    "draft-4 exclusive limit": {"minimum": 5, "exclusiveMinimum": True},
    "draft-4 items": {"items": [{"type": "integer"}]},
    "null for a schema": None,
    "one unknown type of two": {"type": ["integer", "file"]},
    "enum is text": {"enum": "abc"},
    "negative length": {"maxLength": -1},
    "broken pattern": {"pattern": "(["},
    "hostile pattern": {"type": "string", "pattern": "^(a+)+$"},
    "endless reference": {"$ref": "#/$defs/loop"},
    "reference to itself": {"$ref": "#/properties/v"},
    "reference to nowhere": {"$ref": "#/$defs/nowhere"},
    "reference to the network": {"$ref": "http://127.0.0.1:9/s.json"},
    "reference to a file": {"$ref": "file:///etc/hostname"},
    "broken id": {"$id": "http://[", "$ref": "a"},
    "foreign dialect": {"$schema": "http://127.0.0.1:9/dialect"},
}


@pytest.fixture
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        pytest.fail("a schema must not open a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(urllib.request, "urlopen", refuse)


@pytest.mark.usefixtures("_no_network")
@pytest.mark.parametrize("part", ODD_PARTS.values(), ids=ODD_PARTS)
@pytest.mark.parametrize("value", ["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", [1, "x"]])
def test_an_odd_schema_neither_crashes_nor_connects_nor_proves(part: Any, value: Any) -> None:
    if part == ODD_PARTS["hostile pattern"] and not isinstance(value, str):
        value = "text"
    loop = {"loop": {"$ref": "#/$defs/loop"}}
    tools = [tool("t", {"v": part, "w": INTEGER}, **{"$defs": loop})]
    row = step_row(step(("t", {"v": value})), tools=tools)
    assert proven(row) == []


@pytest.mark.parametrize(("depth", "kind"), [(100, "verdict"), (200, "unscored")])
@pytest.mark.filterwarnings("ignore:no row has a verdict")
def test_a_deeply_nested_schema_is_used_or_named_as_too_deep(
    tmp_path: Path, depth: int, kind: str
) -> None:
    nested: dict[str, Any] = INTEGER
    for _ in range(depth):
        nested = {"type": "object", "properties": {"a": nested}}
    row = step_row(step(("t", {"v": {}})), tools=[tool("t", {"v": nested})])
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    (judged,) = grade(tmp_path / "rows.jsonl").judgements
    assert judged.kind == kind
    assert judged.kind == "verdict" or "nested" in judged.detail


KEYWORDS = (
    "type properties required enum const items prefixItems additionalProperties anyOf oneOf allOf "
    "not $ref $defs $id $schema $anchor $dynamicRef minimum maxLength pattern patternProperties "
    "nullable format if then else definitions dependentRequired unevaluatedProperties default"
).split()
_junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from(["object", "#", "#/x", "é", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*KEYWORDS, "a", "b"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(parameters=_junk, values=_junk)
def test_junk_for_a_schema_never_raises(parameters: Any, values: Any) -> None:
    arguments = values if isinstance(values, dict) else {"a": values}
    tools = [{"name": "t", "parameters": parameters}]
    for row in (
        step_row(step(("t", arguments)), tools=tools),
        plan_row(plan(("t", arguments)), tools=tools),
    ):
        assert {f.code for f in findings(row)} <= {"E4", "E5"}
