"""Tools in every shape the data comes in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apbjudge import RowError
from apbjudge.records.tools import build_toolset, pretty, read_tool, read_tools, toolset_from_text

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

FLAT = {"name": "t", "description": "d", "parameters": SCHEMA, "cost": 2}


@pytest.mark.parametrize("spec", [FLAT, {"function": FLAT}, {"function": {"name": "t"}, "cost": 2}])
def test_a_cost_may_stand_inside_or_beside_the_function(spec: dict[str, Any]) -> None:
    tool = read_tool(spec, "tools[0]")
    assert (tool.name, tool.cost) == ("t", 2.0)


@pytest.mark.parametrize(
    ("parameters", "kind"),
    [
        (None, "absent"),
        ({}, "absent"),
        (SCHEMA, "json_schema"),
        ({"properties": {}}, "json_schema"),
        ({"type": "object"}, "mapping"),
        ({"type": "dict", "properties": {}}, "json_schema"),
        ({"city": "where to"}, "mapping"),
        ("a city", "mapping"),
    ],
)
def test_only_a_json_schema_can_be_checked_against(parameters: Any, kind: str) -> None:
    assert read_tool({"name": "t", "parameters": parameters}, "tools[0]").parameter_kind == kind


def test_tools_may_be_a_mapping_from_names() -> None:
    tools = read_tools({"a": {"description": "x"}, "b": None, "c": "prose"}, "tools")
    assert [(t.name, t.description) for t in tools] == [("a", "x"), ("b", ""), ("c", "prose")]


BAD: dict[str, tuple[Any, str]] = {
    "text": ("find_trains", "tools"),
    "list of prose": (["find_trains", "finds trains"], "tools[1]"),
    "no name": ([{"description": "x"}], "tools[0].name"),
    "name is a number": ([{"name": 3}], "tools[0].name"),
    "negative cost": ([{"name": "a", "cost": -1}], "tools[0].cost"),
    "cost is text": ([{"name": "a", "cost": "2"}], "tools[0].cost"),
    "cost is a boolean": ([{"name": "a", "cost": True}], "tools[0].cost"),
}


@pytest.mark.parametrize(("value", "field"), BAD.values(), ids=BAD)
def test_a_bad_definition_is_refused_at_its_place(value: Any, field: str) -> None:
    with pytest.raises(RowError) as caught:
        build_toolset(value, None, "tools")
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("names", "field"),
    [(5, "tool_names"), ("a", "tool_names"), ({"a": 1}, "tool_names"), (["a", 5], "tool_names[1]")],
)
def test_bad_names_are_refused_at_their_place(names: Any, field: str) -> None:
    with pytest.raises(RowError) as caught:
        build_toolset([], names, "tools")
    assert caught.value.field == field


def test_names_are_those_defined_and_those_listed() -> None:
    toolset = build_toolset([{"name": "a"}], ["b", "a"], "tools")
    assert toolset.names == {"a", "b"}
    assert set(toolset.by_name) == {"a"}


@pytest.mark.parametrize(
    ("costs", "expected"), [([1, 0], True), ([1, None], False), ([None, None], False), ([], False)]
)
def test_a_bank_has_costs_when_every_tool_states_one(costs: list[Any], expected: bool) -> None:
    tools = [{"name": f"t{i}", "cost": cost} for i, cost in enumerate(costs)]
    assert build_toolset(tools, None, "tools").has_costs is expected


def test_a_toolset_from_text_is_the_one_from_its_json_and_shared_between_rows() -> None:
    tools = [FLAT, {"name": "ž", "description": "<|im_start|>"}]
    text, names = json.dumps(tools), json.dumps(["x"])
    assert toolset_from_text(text, names, "tools_json") == build_toolset(tools, ["x"], "tools_json")
    assert toolset_from_text(text, names, "tools_json") is toolset_from_text(
        text, names, "tools_json"
    )
    assert toolset_from_text(text, None, "tools_json").names == {"t", "ž"}


def test_the_text_of_a_toolset_is_the_definitions_as_given() -> None:
    tools = {"b": {"z": 1, "a": None, "description": "x"}, "a": {}}
    assert json.loads(build_toolset(tools, None, "tools").text) == tools
    assert list(json.loads(build_toolset(tools, None, "tools").text)) == ["b", "a"]


@pytest.mark.parametrize("depth", [200, 300, 900])
def test_what_is_too_deep_to_be_written_is_refused(depth: int) -> None:
    value: Any = json.loads("[" * depth + "]" * depth)
    if depth <= 250:
        assert json.loads(pretty(value)) == value
        return
    with pytest.raises(RowError, match="nested at most 250 levels"):
        pretty(value)
