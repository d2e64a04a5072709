"""The same tools in every shape they are passed around in are the same tools."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge import RowError
from apbjudge.records.tools import build_toolset, pretty, read_tool, toolset_from_text
from tests.support.rows import (
    FIND_OK,
    plan,
    plan_row,
    proven,
    read,
    step,
    step_row,
)

Spec = dict[str, Any]
PYTHON_WORDS = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
}


def _renamed(tool: Spec, **names: str) -> Spec:
    return {names.get(key, key): value for key, value in tool.items()}


def _words(schema: Any, change: Callable[[str], str]) -> Any:
    """The schema with other words for its types."""
    if isinstance(schema, list):
        return [_words(part, change) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: change(part) if key == "type" and isinstance(part, str) else _words(part, change)
        for key, part in schema.items()
    }


def _with_schema(tool: Spec, schema: Any) -> Spec:
    return {**tool, "parameters": schema}


def _old(tool: Spec) -> Spec:
    """Parameters by name, the required ones beside them."""
    schema = tool["parameters"]
    specs = _words(schema["properties"], PYTHON_WORDS.__getitem__)
    return {**_with_schema(tool, specs), "required": schema["required"]}


def _marked(tool: Spec) -> dict[str, Spec]:
    """Properties that say of themselves whether they are required."""
    schema = tool["parameters"]
    return {
        name: part if "required" in part else {**part, "required": name in schema["required"]}
        for name, part in schema["properties"].items()
    }


def _listed(tool: Spec) -> list[Spec]:
    return [{"name": name, **part} for name, part in _marked(tool).items()]


def _unnamed(tool: Spec) -> Spec:
    return {key: value for key, value in tool.items() if key != "name"}


ONE: dict[str, Callable[[Spec], Any]] = {
    "flat": lambda t: t,
    "OpenAI": lambda t: {"type": "function", "function": t},
    "Anthropic": lambda t: _renamed(t, parameters="input_schema"),
    "MCP": lambda t: _renamed(t, parameters="inputSchema"),
    "Bedrock": lambda t: {
        "toolSpec": {**_unnamed(t), "name": t["name"], "inputSchema": {"json": t["parameters"]}}
    },
    "Gemini": lambda t: {
        "functionDeclarations": [_with_schema(t, _words(t["parameters"], str.upper))]
    },
    "published": lambda t: _renamed(t, name="tool_name", description="tool_description"),
    "Seal-Tools": lambda t: _old(_renamed(t, name="api_name", description="api_description")),
    "dict": lambda t: _with_schema(t, {**t["parameters"], "type": "dict"}),
    "Python words": lambda t: _with_schema(t, _words(t["parameters"], PYTHON_WORDS.__getitem__)),
    "no type": lambda t: _with_schema(
        t, {key: part for key, part in t["parameters"].items() if key != "type"}
    ),
    "required beside": _old,
    "required inside properties": lambda t: _with_schema(
        t, {"type": "object", "properties": _marked(t)}
    ),
    "parameters as a list": lambda t: _with_schema(t, _listed(t)),
    "parameters as text": lambda t: _with_schema(t, json.dumps(t["parameters"])),
    "schema laid open": lambda t: {
        "name": t["name"],
        "description": t["description"],
        **t["parameters"],
    },
    "as text": json.dumps,
    "by its name": lambda t: {t["name"]: _unnamed(t)},
}

ALL: dict[str, Callable[[list[Any]], Any]] = {
    "a list": lambda ts: ts,
    "tools": lambda ts: {"tools": ts},
    "a request": lambda ts: {"model": "m", "tools": ts, "tool_choice": {"type": "auto"}},
    "declarations": lambda ts: [{"functionDeclarations": ts}],
    "text": json.dumps,
    "a list of texts": lambda ts: [t if isinstance(t, str) else json.dumps(t) for t in ts],
}

BY_NAME: dict[str, Callable[[list[Spec]], Any]] = {
    "by name": lambda ts: {t["name"]: _unnamed(t) for t in ts},
    "by name, OpenAI": lambda ts: {t["name"]: {"type": "function", "function": t} for t in ts},
    "by name, old parameters": lambda ts: {t["name"]: _unnamed(_old(t)) for t in ts},
    "by name under tools": lambda ts: {"tools": {t["name"]: t for t in ts}},
}

_types = st.sampled_from(
    [
        {"type": "string", "description": "words"},
        {"type": "integer", "description": "a number"},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "string", "enum": ["one way", "return"]},
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "properties": {"type": {"type": "integer"}}},
    ]
)
_parameters = st.sampled_from(
    ["city", "day", "type", "name", "properties", "required", "parameters", "description"]
)


@st.composite
def _tools(draw: st.DrawFn) -> list[Spec]:
    names = ["find", "tools", "functions", "function", "name", "parameters", "cost", "api/v2.go"]
    chosen = draw(st.lists(st.sampled_from(names), unique=True, min_size=1, max_size=4))
    tools: list[Spec] = []
    for name in chosen:
        properties = draw(st.dictionaries(_parameters, _types, min_size=1, max_size=3))
        required = draw(st.lists(st.sampled_from(sorted(properties)), unique=True))
        schema = {"type": "object", "properties": properties, "required": required}
        tools.append({"name": name, "description": f"Does {name}.", "parameters": schema})
    return tools


def _brief(value: Any) -> list[Any]:
    """What is read of tools, as far as every shape can say it."""
    results: list[Any] = []
    for tool in build_toolset(value, None, "tools").tools:
        parts = {name: _bare(part) for name, part in tool.parameters["properties"].items()}
        required = frozenset(tool.required)
        results.append((tool.name, tool.description, tool.parameter_kind, parts, required))
    return results


def _bare(part: Any) -> Any:
    """A property without what says that it is required or how strictly its type is meant."""
    if not isinstance(part, dict):
        return part
    plain = {key: value for key, value in part.items() if key != "x-coercible"}
    return {key: _bare(v) for key, v in plain.items() if not isinstance(v, bool)}


@given(data=st.data(), tools=_tools(), together=st.sampled_from(sorted(ALL)))
def test_the_same_tools_in_every_shape_are_read_alike(
    data: st.DataObject, tools: list[Spec], together: str
) -> None:
    shapes = [ONE[data.draw(st.sampled_from(sorted(ONE)))] for _ in tools]
    value = ALL[together]([shape(tool) for shape, tool in zip(shapes, tools, strict=True)])
    assert _brief(value) == _brief(tools)
    one = data.draw(st.sampled_from(sorted({*ONE} - {"by its name"})))
    assert _brief(ONE[one](tools[0])) == _brief(tools[:1])
    named = BY_NAME[data.draw(st.sampled_from(sorted(BY_NAME)))]
    assert _brief(named(tools)) == _brief(tools)


BY_NAME_ONLY: dict[str, Any] = {
    "texts": ["find_trains", "reserve_seat", "api/v2/book", "a:b", "Übersetze", "web.search"],
    "named tools": {"tools": {"description": "x"}, "functions": None},
    "named name": {"name": {"description": "x"}, "search": {"description": "y"}},
    "prose": {"find_trains": "finds trains", "reserve_seat": None, "send_mail": {}},
    "schemas": {"find_trains": {"type": "object", "properties": {"city": {}}}},
}


def test_names_are_those_of_the_mapping_or_list() -> None:
    for value in (*BY_NAME_ONLY.values(), []):
        assert [tool.name for tool in build_toolset(value, None, "tools").tools] == list(value)
    assert build_toolset({"functions": []}, None, "tools").tools == ()


def test_every_name_that_a_definition_gives_is_of_a_tool_that_exists() -> None:
    tools = [
        {"name": "Train search", "api_name": "find_trains", "tool_name": "rail"},
        {"hold_table": {"name": "Table holder", "description": "x"}},
    ]
    known = {"Train search", "find_trains", "rail", "hold_table", "Table holder"}
    assert build_toolset(tools, None, "tools").names == known
    for name in known:
        assert proven(plan_row(plan((name, {})), tools=tools)) == []


UNKNOWN: dict[str, tuple[Any, str]] = {
    "another wrapper": ({"data": [{"name": "a"}]}, "tools.data"),
    "a group": ({"mail": {"send": {"description": "x"}}}, "tools.mail"),
    "a group of prose": ({"tools": {"send": "Sends.", "read": "Reads."}}, "tools.tools"),
    "nothing in the wrapper": ({"tools": None}, "tools"),
    "no name": ({"description": "x", "parameters": {"type": "object"}}, "tools.name"),
    "a name that may be a tool or a field": ({"name": "find", "field": "rail"}, "tools"),
    "names with explanations": (["find_trains: finds trains"], "tools[0]"),
    "deep nesting": (json.loads('{"tools":[' * 400 + "]}" * 400), "tools"),
}


@pytest.mark.parametrize(("value", "field"), UNKNOWN.values(), ids=UNKNOWN)
def test_an_unknown_shape_is_bad_input_at_its_place(value: Any, field: str) -> None:
    with pytest.raises(RowError) as caught:
        read(plan_row(plan(FIND_OK), tools=value))
    assert caught.value.field == field


def rules(word: Any, value: Any) -> list[str]:
    """The rules that a value of a parameter of this type proves broken."""
    tools = [{"name": "t", "parameters": {"v": {"type": word}}, "required": ["v"]}]
    return [rule for _, rule, _ in proven(step_row(step(("t", {"v": value})), tools=tools))]


def test_a_type_in_the_words_of_a_programming_language_takes_what_spells_its_value() -> None:
    for word, spelt, wrong in (
        ("str", [5, True], [[5]]),
        ("int", ["5"], ["five", "5.5", True]),
        ("float", ["37.5", " 2 "], ["about 5"]),
        ("bool", ["True"], ["yes"]),
        ("list", ['["a"]'], ["a, b"]),
        ("dict", ["{}"], ["[1]"]),
        (["int", "NoneType"], ["null"], ["x"]),
    ):
        assert [rules(word, value) for value in spelt] == [[]] * len(spelt), word
        assert [rules(word, value) for value in wrong] == [["wrong-type"]] * len(wrong), word
    for word in ("any", "date", "List[int]", ["int", "file"], "", 3, []):
        assert [rules(word, value) for value in (5, "5", [1], {"a": 1}, None)] == [[]] * 5


def test_parameters_that_can_not_be_read_prove_nothing() -> None:
    twice = [{"name": "a", "required": True}, {"name": "a"}]
    for parameters, required in (
        ({"city": {"type": "str"}}, None),  # nothing says what is required
        (twice, []),
        ({"city": "where to"}, ["city"]),
    ):
        tools = [{"name": "t", "parameters": parameters, "required": required}]
        for arguments in ({}, {"city": 5}, {"other": 1}, None):
            assert proven(step_row(step(("t", arguments)), tools=tools)) == []
            assert proven(plan_row(plan(("t", arguments)), tools=tools)) == []


# Toolsets ----------------------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FLAT = {"name": "t", "description": "d", "parameters": SCHEMA, "cost": 2}


def test_a_cost_may_stand_inside_or_beside_the_function_and_a_bank_needs_all() -> None:
    for spec in (FLAT, {"function": FLAT}, {"function": {"name": "t"}, "cost": 2}):
        assert read_tool(spec, "tools[0]").cost == 2.0
    for cost in (-1, "2", True):
        with pytest.raises(RowError, match=r"field tools\[0\]\.cost: "):
            build_toolset([{"name": "a", "cost": cost}], None, "tools")
    for costs, has_costs in (([1, 0], True), ([1, None], False), ([], False)):
        tools = [{"name": f"t{i}", "cost": cost} for i, cost in enumerate(costs)]
        assert build_toolset(tools, None, "tools").has_costs is has_costs


def test_only_a_json_schema_can_be_checked_against() -> None:
    def kinds(*given: Any) -> list[str]:
        return [read_tool({"name": "t", "parameters": of}, "t").parameter_kind for of in given]

    assert kinds(None, {}) == ["absent", "absent"]
    assert kinds({"properties": {}}, {"type": "dict", "properties": {}}) == ["json_schema"] * 2
    assert kinds({"type": "object"}, "a city") == ["mapping", "mapping"]


def test_a_toolset_from_text_is_the_one_from_its_json_and_shared_between_rows() -> None:
    tools = [FLAT, {"name": "ž", "description": "<|im_start|>"}]
    text, names = json.dumps(tools), json.dumps(["x", "t"])
    toolset = toolset_from_text(text, names, "tools_json")
    assert toolset == build_toolset(tools, ["x", "t"], "tools_json")
    assert toolset is toolset_from_text(text, names, "tools_json")
    assert (toolset.names, set(toolset.by_name)) == ({"t", "ž", "x"}, {"t", "ž"})


def test_the_text_of_a_toolset_is_the_definitions_as_given() -> None:
    tools = {"b": {"z": 1, "a": None, "description": "x"}, "a": {}}
    text = build_toolset(tools, None, "tools").text
    assert list(json.loads(text).items()) == [*tools.items()]
    deep: Any = json.loads("[" * 250 + "]" * 250)
    assert json.loads(pretty(deep)) == deep
    with pytest.raises(RowError, match="nested at most 250 levels"):
        pretty(json.loads("[" * 300 + "]" * 300))
