"""What the page is told of an item."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.protocols.table import protocol_of
from apbjudge.records import Item, Row
from apbjudge.reports.page.items import case_key, case_view, judgement_view, prediction_view

from ..rows import check_golden


def item(**values: Any) -> Item:
    row = {"id": "i", "tested_model": "m", "query": "q", "model_response": "{}", **values}
    return Row(row, 1).to_item()


def plan(*calls: dict[str, Any], **values: Any) -> Item:
    return item(model_response=json.dumps({"plan": "p", "tool_chain": list(calls)}), **values)


def finding(where: str) -> dict[str, Any]:
    return {"code": "E5", "certainty": "proven", "rule": "r", "message": "m", "where": where}


def calls_of(view: dict[str, Any]) -> list[dict[str, Any]]:
    return [call for step in view["steps"] for call in step.get("calls", ())]


def examples() -> list[Item]:
    paths = sorted(path for path in Path("examples").glob("*.jsonl") if path.stem != "cases")
    lines = [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    return [Row(json.loads(line), number).to_item() for number, line in enumerate(lines, 1)]


def test_every_example():
    for read in examples():
        protocol = protocol_of(read)
        result = protocol.find(read, protocol.rubric_for(read))
        view = prediction_view(read, [one.__dict__ for one in result])
        assert orjson.loads(orjson.dumps([case_view(read), view]))[1] == view
        calls = [*read.prediction.calls]
        assert [call["name"] for call in calls_of(view)] == [call.name for call in calls]
        placed = {f["where"] for f in view["findings"] if "call" not in f}
        assert placed <= {"response", "tool_chain"} | {
            f"step[{s['number'] - 1}]" for s in view["steps"] if "calls" not in s
        }
        for shown in view["findings"]:
            if shown["where"].startswith("tool_chain[") or ".tool_calls[" in shown["where"]:
                assert shown["where"].startswith(calls[shown["call"]].where)


STEP = {"role": "assistant", "thought": "t", "tool_calls": [{"name": "A", "arguments": {}}] * 2}
FUNCTION = {"name": "A", "arguments": '{"x": 1}'}
USE = {"type": "tool_use", "name": "A", "input": {"x": 1}}
SAID = {"type": "text", "text": "t"}
MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "thought": "t", "tool_calls": [{"function": FUNCTION}]},
    {"thought": "t", "tool": "A", "arguments": {"x": 1}, "observation": "o"},
    {"role": "assistant", "content": [SAID, USE]},
    {"role": "assistant", "content": None, "function_call": FUNCTION},
    {"role": "tool", "tool_name": "A", "content": "r"},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:…"}}]},
    {"role": "user", "content": [{"type": "tool_result", "content": [SAID]}]},
    {"role": "model", "parts": [{"text": "t"}, {"functionCall": {"name": "A", "args": {"x": 1}}}]},
    {"what": {"ever": 1}},
]


def test_views_are_the_golden_ones():
    """Of a case with distractors, of steps, after a broken tool, with messages of every shape."""
    arguments = {"max_price": 1, "who": [{"dob": 1}], "a": {"b": 1}, "a.b": 2}
    parameters = {"type": "object", "properties": {}}
    distracted = plan(
        {"name": "A"},
        {"name": "B", "parameter_description": arguments},
        tools=[{"name": "A", "cost": 0, "parameters": parameters}, {"name": "D"}],
        tool_names=["A", "D", "Named"],
        extraneous_tool_names=["D"],
        files=["a.png"],
        tool_chain=[{"name": "A", "parameter_description": {}}],
        system_prompt="s",
        task_category="c",
    )
    ends = (".max_price", ".arguments.max_price", ".arguments.who[0].dob", ".arguments.a.b", "")
    places = [f"tool_chain[1]{end}" for end in (*ends, ".arguments", ".arguments.gone")]
    steps = item(
        planning_regime="Step-wise",
        prediction_horizon=3,
        model_response=json.dumps([{**STEP, "tool_calls": [], "thought": "idle"}, STEP, STEP]),
        ground_truth_steps=[STEP],
        trajectory_prefix=MESSAGES,
    )
    of_steps = ["step[1]", "step[1].tool_calls[1].arguments.x", "step[0]", "step[2].role"]
    of_tool = {"broken_tool_name": "A", "replacement_tool": {"name": "B"}, "tools": [{"name": "A"}]}
    shown = [
        (distracted, [*places, "tool_chain[10]", "response", ""]),
        (steps, of_steps),
        (item(planning_regime="Step-wise", **of_tool), []),
        (item(), []),
    ]
    views = [(case_view(of), prediction_view(of, map(finding, at))) for of, at in shown]
    check_golden("item_views.json", json.dumps(views, indent=1, ensure_ascii=False) + "\n")


BASE: dict[str, Any] = {
    "prediction_horizon": 1,
    "planning_regime": "Step-wise",
    "tools": [{"name": "A", "parameters": {"x": 1}}, {"name": "B"}],
    "tool_names": ["A", "B", "C"],
    "extraneous_tool_names": ["A"],
    "broken_tool_name": "A",
    "replacement_tool": {"name": "B"},
    "trajectory_prefix": [{"role": "user", "content": "t", "more": 1}],
    "plan": "p",
    "ground_truth_steps": [{"thought": "t", "tool_calls": [{"name": "A", "arguments": {"x": 1}}]}],
    "files": ["a.png"],
    "source": "s",
    "task_category": "c",
    "stage": "early",
}
OTHERS: list[dict[str, Any]] = [
    {"query": "other"},
    {"prediction_horizon": 2},
    {"tools": [{"name": "B"}, {"name": "A", "parameters": {"x": 1}}]},
    {"tool_names": ["A", "B", "D"]},
    {"extraneous_tool_names": ["A", "B"]},
    {"broken_tool_name": "B"},
    {"unsolvable_type": "visual_missing"},
    {"trajectory_prefix": [{"role": "user", "content": "t", "more": True}]},
    {"ground_truth_steps": [*BASE["ground_truth_steps"], {"thought": "idle", "tool_calls": []}]},
    {"files": ["b.png"]},
    {"task_category": "other"},
    {"stage": "late"},
]


def test_other_cases_have_other_keys():
    base = item(**BASE)
    for values in OTHERS:
        other = item(**{**BASE, **values})
        assert orjson.dumps(case_view(other)) != orjson.dumps(case_view(base)), values
        assert case_key(other) != case_key(base), values


def test_the_key_of_a_case_is_that_of_all_its_rows():
    read = examples()
    keys = {case_key(one): orjson.dumps(case_view(one)) for one in read}
    assert len(keys) == len(set(keys.values())) < len(read) / 2
    assert all(keys[case_key(one)] == orjson.dumps(case_view(one)) for one in read)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=9,
)
KEYS = st.sampled_from(
    "role content name tool tool_calls function_call thought arguments type text".split()
)


@settings(max_examples=40)
@given(st.lists(st.dictionaries(KEYS, JSON, max_size=4), max_size=3))
def test_any_trajectory_is_shown(messages: list[dict[str, Any]]):
    view = case_view(item(trajectory_prefix=messages))
    assert len(orjson.loads(orjson.dumps(view))["trajectory"]) == len(messages)


@pytest.mark.parametrize("depth", [40, 41])
def test_values_are_cut_where_they_become_too_deep(depth: int):
    arguments: dict[str, Any] = {"x": "]}[{" * 20}
    for _ in range(depth - 1):
        arguments = {"x": arguments}
    read = plan({"name": "A", "parameter_description": arguments})
    shown = calls_of(prediction_view(read, []))[0]["arguments"]
    seen = 0
    while isinstance(shown, dict):
        shown, seen = shown["x"], seen + 1
    assert seen == min(depth, 40)
    assert (shown == "]}[{" * 20) == (depth <= 40)


def test_numbers_that_a_page_would_round_become_texts():
    as_they_are = [2**53 - 1, 2**53, 1.5, True]
    large = [2**53 + 1, -(2**53) - 1]
    read = plan({"name": "A", "parameter_description": {"x": [*as_they_are, *large]}})
    shown = calls_of(prediction_view(read, []))[0]["arguments"]["x"]
    assert [repr(value) for value in shown] == [
        *map(repr, as_they_are),
        *(repr(str(value)) for value in large),
    ]


def test_judgements():
    shown = {"judge": "j", "kind": "verdict", "is_correct": False, "grade": 0.0}
    shown |= {"errors": {"E1": True}, "cost_usd": 0.0}
    facts = {"uses_distractor": False, "plan_cost": 0.0, "excess_cost": None}
    empty = {"inconsistent": False, "uncertainty": None, "overrides": [], "raw": ""}
    other = {"line": 3, "item_id": "i", "findings": [finding("response")]}
    words = {"uses a distractor": False, "cost of the plan": 0.0}
    assert judgement_view(shown | facts | empty | other) == shown | {"facts": words}
    assert judgement_view({"inconsistent": True})["inconsistent"] is True
