"""Rows with a query and tools, with reference calls or without; and arguments' types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.agents.cases.sources import SourceOptions, detect
from apbjudge.agents.cases.sources.converting import converted
from apbjudge.errors import InputError
from apbjudge.records.tools import read_tool

from .sourcing import BAKERY, fates, lines, needs, only, seeds

CALLS = [
    {"name": "find_loaves", "arguments": {"kind": "rye"}},
    {"name": "order_loaf", "arguments": {"loaf_id": "R-77", "count": 2}},
]


def row(name: str, calls: Any = CALLS, /, **fields: Any) -> dict[str, Any]:
    return {
        "id": name,
        "query": "Two loaves of rye (R-77).",
        "tools": BAKERY,
        "calls": calls,
        **fields,
    }


def test_reference_calls_are_the_solution(tmp_path: Path) -> None:
    seed = only(seeds(lines(tmp_path / "x.jsonl", row("a", source="till", licence="CC0"))))
    assert (seed.source, seed.licence, seed.repairs) == ("till", "CC0", ())
    assert [(c.name, dict(c.arguments), c.step, c.result) for c in seed.calls] == [
        ("find_loaves", {"kind": "rye"}, 1, None),
        ("order_loaf", {"loaf_id": "R-77", "count": 2}, 2, None),
    ]
    assert not seed.has_results


SPELLINGS = [
    {"api": "find_loaves", "parameters": {"kind": "rye"}},
    {"name": "find_loaves", "kwargs": {"kind": "rye"}},
    {"function": {"name": "find_loaves", "arguments": '{"kind": "rye"}'}},
    {"tool_name": "find_loaves", "args": {"kind": "rye"}},
    {"function": "find_loaves", "arguments": {"kind": "rye"}},
]


def test_calls_tools_and_queries_are_read_under_any_name(tmp_path: Path) -> None:
    texts = {"tools_json": json.dumps(BAKERY)}, {"tools": json.dumps(BAKERY)}
    by_name = {"api_list": {each["name"]: each for each in BAKERY}}
    for query, calls, tools, value in (
        ("question", "calling", {"functions": BAKERY}, SPELLINGS[:1]),
        ("instruction", "tool_calls", texts[0], SPELLINGS[1:2]),
        ("user_query", "answers", texts[1], SPELLINGS[2:3]),
        ("prompt", "ground_truth", by_name, SPELLINGS[3:4]),
        ("query", "actions", by_name, SPELLINGS[4:]),
        ("query", "answers", by_name, SPELLINGS[0]),
        ("query", "answers", by_name, json.dumps(SPELLINGS[:1])),
    ):
        path = lines(tmp_path / "x.jsonl", {"id": "a", query: "Rye?", calls: value, **tools})
        assert detect(SourceOptions(path)) == "functions"
        seed = only(seeds(path))
        assert [(c.name, c.arguments) for c in seed.calls] == [("find_loaves", {"kind": "rye"})]
        assert (seed.trajectory.query, len(seed.toolset.tools)) == ("Rye?", 3)


def test_names_of_results_say_what_a_value_rests_on(tmp_path: Path) -> None:
    calls = [
        {"name": "find_loaves", "arguments": {"kind": "rye"}, "responses": ["API_call_0", "kind"]},
        {"name": "find_loaves", "arguments": {"kind": "kind"}, "label": "$var_1"},
        {"name": "order_loaf", "arguments": {"loaf_id": "API_call_0", "ribbon": "$var_1.colour"}},
        {"name": "order_loaf", "arguments": {"loaf_id": ["API_call_0 result", "$var_1"]}},
        {"name": "order_loaf", "arguments": {"loaf_id": "API_call_00", "ribbon": "API_call_9"}},
    ]
    seed = only(seeds(lines(tmp_path / "x.jsonl", row("a", calls))))
    assert needs(seed) == [{}, {}, {"loaf_id": 0, "ribbon": 1}, {"loaf_id": 1}, {}]


def test_rows_that_are_no_seeds_cost_no_other(tmp_path: Path) -> None:
    rows_and_fates = [
        (row("a"), "a"),
        (row("a", query="Other?"), "! id"),
        (row("b"), "- an entry before it is the same task"),
        (row("c", []), "- no call is made"),
        (row("d", query=" "), "- the query is missing"),
        (row("e", [{"name": "bake", "arguments": {}}]), "- a called tool is not offered"),
        (row("f", [{"arguments": {}}]), "! calls[0]"),
        (row("g", [{"name": "find_loaves", "arguments": "rye, please"}]), "! calls[0]"),
        (row("i", tools=None), "- no tools are known"),
        (row("k", query=4), "! query"),
        ("{", "! line"),
        ({**row("m", query="Or rolls?"), "id": None}, "x-12"),
        (row("n", ["find_loaves(kind=rye)"]), "! calls[0]"),
    ]
    path = lines(tmp_path / "x.jsonl", *(row for row, _ in rows_and_fates))
    assert fates(path) == [fate for _, fate in rows_and_fates]


def test_a_file_may_be_one_array_or_one_object(tmp_path: Path) -> None:
    rows = [row("a"), row("b", query="And rolls?")]
    path = tmp_path / "x.json"
    for indent in (None, 1):
        path.write_text(json.dumps(rows, indent=indent))
        assert fates(path) == ["a", "b"]
        path.write_text(json.dumps(rows[0], indent=indent))
        assert fates(path) == ["a"]


def test_queries_have_no_solution(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "x.jsonl", row("a", None), row("b", None, query=""), row("c", None, tools=[])
    )
    assert detect(SourceOptions(path)) == "queries"
    assert fates(path) == ["a", "- the query is missing", "- no tools are known"]
    seed = only(seeds(lines(tmp_path / "x.jsonl", row("a", None))))
    assert (seed.calls, seed.trajectory.steps) == ((), ())


def test_unusable_sources_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.jsonl: no such file or folder"):
        detect(SourceOptions(tmp_path / "none.jsonl"))
    with pytest.raises(
        InputError, match=r"expected tasks or trajectories of agents, got an empty file"
    ):
        fates(lines(tmp_path / "empty.jsonl"))
    with pytest.raises(InputError, match=r"expected trajectories of agents, .*, got fields 'a'"):
        fates(lines(tmp_path / "x.jsonl", {"a": 1}, {"a": 2}))
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="expected a folder of JSON files"):
        fates(tmp_path / "folder")


# Types -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("number", "37.5", 37.5),
        ("number", "1234567890.1234567", "1234567890.1234567"),
        ("number", "１２", "１２"),
        ("number", True, True),
        ("integer", "12", 12),
        ("integer", "007", "007"),
        ("integer", 12.0, 12),
        ("boolean", "True", True),
        ("string", 12, "12"),
        ("array", "a, b", "a, b"),
        ("object", '{"a": 1}', {"a": 1}),
        (["integer", "null"], "4", 4),
    ],
)
def test_arguments_are_converted_where_nothing_is_lost(
    kind: Any, value: Any, expected: Any
) -> None:
    part = {"type": "object", "properties": {"n": {"type": kind}}}
    parts = {"x": {"type": "array", "items": part}}
    tool = read_tool({"name": "t", "parameters": {"type": "object", "properties": parts}}, "t")
    result = converted({"x": [{"n": value, "m": "5"}, "6"], "y": "5"}, tool)
    assert result == {"x": [{"n": expected, "m": "5"}, "6"], "y": "5"}
    assert type(result["x"][0]["n"]) is type(expected)


def test_a_conversion_is_a_repair(tmp_path: Path) -> None:
    calls = [{"name": "pay_order", "arguments": {"order_id": "O-1", "amount": "9.5"}}]
    seed = only(seeds(lines(tmp_path / "x.jsonl", row("a", calls))))
    assert seed.calls[0].arguments == {"order_id": "O-1", "amount": 9.5}
    assert seed.trajectory.steps[1].calls[0].arguments == seed.calls[0].arguments
    assert seed.repairs == ("arguments converted to the schema's types",)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_KINDS = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null"])


@given(_JSON, _KINDS | st.lists(_KINDS) | _JSON)
def test_conversion_is_stable(value: Any, kind: Any) -> None:
    schema = {"type": "object", "properties": {"x": {"type": kind}}}
    tool = read_tool({"name": "t", "parameters": schema}, "t")
    once = converted({"x": value}, tool)
    assert converted(once, tool) == once
