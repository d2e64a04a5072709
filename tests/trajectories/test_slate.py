"""Executions of given plans: what agrees with the reference, and what their cases must be."""

from __future__ import annotations

import json
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import apbjudge
from apbjudge.errors import InputError, OptionError, RowError
from apbjudge.records.trajectories import (
    LogPlace,
    Observation,
    ToolCall,
    Trajectory,
    TrajectoryStep,
    trajectory_row,
)
from apbjudge.trajectories.slate import (
    SlateCase,
    SlateEvaluator,
    read_cases,
    resolved,
    same,
    validate,
)

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "runs"
TOOLS = [
    {"name": "find", "results": {"properties": {"ids": {}, "room": {}}}},
    {"name": "open", "results": {"hours": {"type": "string"}}},
    {"name": "tell"},
]
CASE: dict[str, Any] = {
    "id": "a",
    "query": "When is the heron's room open?",
    "plan": [
        {"step": "1", "text": "Find it"},
        {"step": "1.1", "tool": "find", "arguments": {"title": "Heron", "n": 2}},
        {"step": "1.2", "text": "think"},
        {"step": "2.1", "tool": "open", "arguments": {"room": "OUTPUT_FROM_STEP_1.1.room"}},
        {"step": "2.2", "tool": "tell", "arguments": {"to": "Ann"}},
    ],
    "tools": TOOLS,
    "outputs": {
        "1.1": {"ids": ["h1"], "room": "north"},
        "2.1": {"hours": "10 to 17"},
        "2.2": {"sent": True},
    },
}


def case(**changes: Any) -> SlateCase:
    return SlateCase.model_validate({**CASE, **changes})


def steps(**changes: Any) -> tuple[TrajectoryStep, ...]:
    """A perfect execution, with other steps for some substeps (``s21`` is 2.1); None leaves out."""
    found: list[TrajectoryStep] = []
    for of in case().substeps:
        extra = {"substep": of.step}
        step = TrajectoryStep("agent", "message", "thinking", extra=extra)
        if of.tool is not None:
            output = (Observation(CASE["outputs"][of.step], "c"),)
            call = (ToolCall(of.tool, resolved(of.arguments, CASE["outputs"]), "c"),)
            step = replace(step, kind="call", calls=call, observations=output)
        name = f"s{of.step.replace('.', '')}"
        if (change := changes.get(name, step)) is not None:
            found.append(replace(change, extra={**change.extra, "substep": of.step}))
    return tuple(found)


def call(name: str, output: Any = None, **arguments: Any) -> TrajectoryStep:
    answer = () if output is None else (Observation(output, "c"),)
    calls = (ToolCall(name, arguments, "c"),)
    return TrajectoryStep("agent", "call", calls=calls, observations=answer)


def evaluated(*of: TrajectoryStep, **usage: float) -> Any:
    run = Trajectory(
        trajectory_id="r",
        case_id="a",
        tested_model="m",
        steps=of,
        usage=usage,
        place=LogPlace("trajectories"),
    )
    return SlateEvaluator({"a": case()}, "").evaluate(run)


def test_a_perfect_execution_agrees_in_everything() -> None:
    found = evaluated(*steps(), calls=4)
    assert found.is_correct
    assert found.measures == {
        "substeps": 4,
        "actions agree": 4,
        "tool substeps": 3,
        "tools match": 3,
        "arguments match": 3,
        "arguments match exactly": 3,
        "unresolved references": 0,
        "correct (last call)": 1,
        "used calls": 4,
    }
    assert (found.classes, found.first_error) == ({}, None)
    assert case().sinks == ("2.1", "2.2")  # 1.1 is consumed by 2.1


@pytest.mark.parametrize(
    ("changes", "differs", "failure", "at"),
    [
        ({"s12": call("tell", {})}, {"actions agree": 3}, "wrong action", None),
        (
            {"s21": call("tell", {"hours": "x"})},
            {"tools match": 2, "arguments match": 2, "arguments match exactly": 2},
            "wrong tool",
            2,
        ),
        (
            {"s21": call("open", {"hours": "x"}, room="south")},
            {"arguments match": 2, "arguments match exactly": 2},
            "wrong arguments",
            2,
        ),
        (
            {"s21": TrajectoryStep("agent", text="no need")},
            {"actions agree": 3, "tools match": 2, "arguments match": 2,
             "arguments match exactly": 2},
            "wrong action",
            2,
        ),
        (
            {"s22": None},
            {"actions agree": 3, "tools match": 2, "arguments match": 2,
             "arguments match exactly": 2, "correct (last call)": 0},
            "wrong action",
            None,
        ),
        ({"s21": call("open", {"hours": "never"}, room="north")}, {}, "wrong output", None),
        ({"s21": call("open", {"hours": "10 to 17"}, room=" North ")},
         {"arguments match exactly": 2}, "", None),
    ],
)  # fmt: skip
def test_single_faults_are_counted_where_they_are(
    changes: dict[str, Any], differs: dict[str, float], failure: str, at: int | None
) -> None:
    perfect, found = evaluated(*steps()).measures, evaluated(*steps(**changes))
    assert found.measures == {**perfect, **differs}
    is_right = failure in {"", "wrong action"} and at is None and "s22" not in changes
    assert found.is_correct is is_right
    assert found.classes == ({} if is_right else {"failure": failure})
    if failure != "wrong action" or not is_right:
        assert found.first_error == at


def test_references_follow_the_agent_s_own_outputs() -> None:
    """The first output is wrong; the call that carries it on is right for what the agent had."""
    wrong = call("find", {"ids": [], "room": "south"}, title="Heron", n=2)
    carried = call("open", {"hours": "10 to 17"}, room="south")
    found = evaluated(*steps(s11=wrong, s21=carried))
    assert found.measures["arguments match"] == 3
    assert found.is_correct  # whatever happened between
    by_gold = call("open", {"hours": "10 to 17"}, room="north")
    assert evaluated(*steps(s11=wrong, s21=by_gold)).measures["arguments match"] == 2
    by_name = call("open", {"hours": "10 to 17"}, room="OUTPUT_FROM_STEP_1.1.room")
    assert evaluated(*steps(s11=wrong, s21=by_name)).measures["arguments match"] == 3
    nothing = call("open", {"hours": ""}, room="OUTPUT_FROM_STEP_1.9.room")
    assert evaluated(*steps(s21=nothing)).measures["unresolved references"] == 1


def test_steps_without_a_mark_are_taken_in_order_or_refused() -> None:
    bare = tuple(replace(step, extra={}) for step in steps())
    assert evaluated(*bare).is_correct
    with pytest.raises(RowError, match=r"extra\.substep in each step, or 4 steps"):
        evaluated(*bare[:-1])
    with pytest.raises(RowError, match=r"a substep of case a, got '7\.7'"):
        evaluated(replace(bare[0], extra={"substep": "7.7"}))


def test_of_several_steps_for_a_substep_the_last_counts() -> None:
    first = replace(call("tell", {}), extra={"substep": "2.1"})
    assert evaluated(first, *steps()).measures["tools match"] == 3
    assert evaluated(*steps(), first).measures["tools match"] == 2


def test_outputs_as_text_are_read_as_json() -> None:
    found = evaluated(*steps(s21=call("open", json.dumps(CASE["outputs"]["2.1"]), room="north")))
    assert found.is_correct


# Values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "how"),
    [
        (35, 35.0, "exact"),
        (35, "35.00", "canonical"),
        ("2031-06-02", "2031-06-02T00:00", "canonical"),
        ("2031-06-02", "2031-06-03", ""),
        (True, "Yes", "canonical"),
        (True, 1, ""),
        ("true", True, "canonical"),
        ("  Blue  vase", "blue VASE", "canonical"),
        ([1, {"a": "X"}], [1.0, {"a": "x"}], "canonical"),
        ([1, 2], [2, 1], ""),
        ({"a": 1}, {"a": 1, "b": None}, ""),
        (None, None, "exact"),
        (None, "", ""),
        ("nan", "nan", "exact"),
        ("12 May", "12. May", ""),
    ],
)
def test_values_are_the_same_exactly_or_once_written_in_one_way(
    one: Any, other: Any, how: str
) -> None:
    assert same(one, other) == how
    assert same(other, one) == how


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=8,
)


@given(JSON, JSON)
def test_sameness_is_reflexive_and_symmetric(one: Any, other: Any) -> None:
    assert same(one, json.loads(json.dumps(one))) == "exact"
    assert same(one, other) == same(other, one)


# Cases --------------------------------------------------------------------------------------------


def changed(at: int, **fields: Any) -> list[dict[str, Any]]:
    return [{**step, **fields} if i == at else step for i, step in enumerate(CASE["plan"])]


FAULTS = {
    "unknown-tool": {"plan": changed(1, tool="look")},
    "unknown-step": {"plan": changed(3, arguments={"room": "OUTPUT_FROM_STEP_9.9.room"})},
    "forward-reference": {"plan": changed(1, arguments={"x": "OUTPUT_FROM_STEP_2.2.sent"})},
    "undeclared-field": {"plan": changed(3, arguments={"room": "OUTPUT_FROM_STEP_1.1.colour"})},
    "field-not-recorded": {"outputs": {**CASE["outputs"], "1.1": {"ids": []}}},
    "no-output": {"outputs": {"1.1": CASE["outputs"]["1.1"]}},
    "repeated-step": {"plan": changed(4, step="2.1")},
    "same-tool-again": {"plan": changed(4, tool="open")},
}


@pytest.mark.parametrize("rule", FAULTS)
def test_planted_faults_of_the_data_flow_are_found(rule: str) -> None:
    assert [*validate(case())] == []
    found = {finding.rule: finding for finding in validate(case(**FAULTS[rule]))}
    assert rule in found
    assert found[rule].certainty == ("suspected" if rule == "same-tool-again" else "proven")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": "b", "query": "?"}, "field plan: expected a value, got nothing"),
        (
            {**CASE, "id": "b", "plan": [{"step": "1.1"}]},
            "field plan: expected a substep with a tool",
        ),
        (
            {**CASE, "id": "b", **FAULTS["unknown-step"]},
            "field plan.2.1: expected a data flow that can be",
        ),
        ("nonsense", "field line: expected one JSON object"),
        (CASE, "field id: expected an id that occurs once, got 'a'"),
    ],
)
def test_unusable_cases_are_named_with_their_line(row: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    text = row if isinstance(row, str) else json.dumps(row)
    path.write_text(json.dumps(CASE) + "\n" + text + "\n")
    with pytest.raises(InputError) as caught:
        read_cases(path)
    assert str(caught.value).startswith(f"{path}:2: {message}")


def test_the_example_gives_its_figures_and_is_what_its_script_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["make_slate.py", str(tmp_path)])
    runpy.run_path(str(EXAMPLES / "make_slate.py"), run_name="__main__")
    for name in ("slate_cases.jsonl", "slate_runs.jsonl"):
        assert (tmp_path / name).read_text() == (EXAMPLES / name).read_text()
    cases = EXAMPLES / "slate_cases.jsonl"
    run = apbjudge.grade(EXAMPLES / "slate_runs.jsonl", protocol="slate", cases=cases)
    figures = {group.tested_model: group.figures for group in run.summary.groups}
    assert figures["alder-agent"]["execution success"].value == 1
    birch = {name: estimate.value for name, estimate in figures["birch-agent"].items()}
    assert birch["execution success"] == pytest.approx(3 / 6)
    assert birch["action identification"] == pytest.approx(16 / 18)
    assert birch["tool match"] == pytest.approx(10 / 12)
    assert birch["argument match"] == pytest.approx(9 / 10)
    assert birch["failed by wrong tool"] == pytest.approx(1 / 3)


def test_without_cases_the_option_says_what_they_are() -> None:
    row = trajectory_row(
        Trajectory(
            trajectory_id="r",
            case_id="a",
            tested_model="m",
            steps=(),
            place=LogPlace("trajectories"),
        )
    )
    with pytest.raises(OptionError, match="--cases: expected a JSONL file of cases with plan"):
        apbjudge.grade([row], protocol="slate")
