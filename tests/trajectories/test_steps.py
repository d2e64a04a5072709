"""Steps of trajectories as predictions: what each row shows, and what it must not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.errors import OptionError
from apbjudge.records.responses import message_calls
from apbjudge.records.trajectories import (
    LogPlace,
    StepSource,
    ToolCall,
    ToolResult,
    Trajectory,
    TrajectoryStep,
)
from apbjudge.records.wire import Row
from apbjudge.trajectories.steps import step_rows

TOOL = {"type": "function", "function": {"name": "find", "description": "Finds an order."}}


def user(text: str, **fields: Any) -> TrajectoryStep:
    return TrajectoryStep("user", text=text, **fields)


def agent(text: str = "", *calls: ToolCall, answers: Any = (), thought: str = "") -> TrajectoryStep:
    kind = "call" if calls else "message"
    return TrajectoryStep("agent", kind, text, thought, calls, tuple(answers))


def run_of(*steps: TrajectoryStep, **fields: Any) -> Trajectory:
    values: dict[str, Any] = {"trajectory_id": "t4-0", "case_id": "t4", "tested_model": "alder"}
    values["query"] = next((step.text for step in steps if step.source == "user"), "")
    return Trajectory(**values | {"steps": steps, "place": LogPlace("tau-bench")} | fields)


SHOP = run_of(
    user("Where is it?"),
    agent("", ToolCall("find", {"order": 7}, "c1"), answers=[ToolResult({"state": 1}, "c1")]),
    agent(
        "Two more.",
        ToolCall("find", "not JSON", "c2", "no JSON"),
        ToolCall("stock"),
        answers=[ToolResult("broken", "c2", "find", is_error=True), ToolResult("12")],
        thought="Hm.",
    ),
    agent("It is here."),
    system_prompt="Be brief.",
)


def prefix(row: dict[str, Any]) -> list[dict[str, Any]]:
    return json.loads(row["trajectory_prefix_json"])


def test_a_row_says_all_that_the_published_format_has() -> None:
    row = list(step_rows(SHOP))[1]
    answer = row.pop("model_response")
    find = {"name": "find", "arguments": {"order": 7}}
    made = {"id": "c1", "type": "function", "function": find}
    assert prefix(row) == [
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "content": None, "tool_calls": [made]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"state":1}'},
    ]
    del row["trajectory_prefix_json"]
    assert row == {
        "id": "t4-0-step1",
        "case_id": "t4",
        "split": "step_wise_planning",
        "planning_regime": "Step-wise",
        "prediction_horizon": 1,
        "source": "tau-bench",
        "stage": "middle",
        "system_prompt": "Be brief.",
        "query": "Where is it?",
        "tested_model": "alder",
    }
    assert json.loads(answer) == {
        "role": "assistant",
        "thought": "Hm.\n\nTwo more.",
        "tool_calls": [
            {"type": "function", "function": {"name": "find", "arguments": "not JSON"}},
            {"type": "function", "function": {"name": "stock", "arguments": None}},
        ],
    }


def test_the_prefix_has_thoughts_errors_and_calls_without_ids() -> None:
    last = list(step_rows(SHOP))[-1]
    thought, broken, answer = prefix(last)[3:]
    assert (thought["content"], thought["thought"]) == ("Two more.", "Hm.")
    assert [call.get("id") for call in thought["tool_calls"]] == ["c2", None]
    marks = {"tool_call_id": "c2", "name": "find", "is_error": True}
    assert broken == {"role": "tool", "content": "broken", **marks}
    assert answer == {"role": "tool", "content": "12"}


def test_what_users_do_themselves_is_not_shown() -> None:
    own = (ToolCall("toggle", {"on": True}, "u1"),)
    run = run_of(
        user("Nothing works."),
        agent("Toggle it."),
        user("", calls=own, observations=(ToolResult("MODE", "u1"),)),
        TrajectoryStep("environment", observations=(ToolResult("LATER", "u1"),)),
        TrajectoryStep("environment", text="Ping.", observations=(ToolResult("LOST", "x"),)),
        TrajectoryStep("system", text="Two turns left."),
        user("Done.", calls=own),
        user(""),
        agent("Good."),
    )
    row = list(step_rows(run))[1]
    assert prefix(row)[2:] == [
        {"role": "tool", "content": "Ping."},
        {"role": "tool", "tool_call_id": "x", "content": "LOST"},
        {"role": "system", "content": "Two turns left."},
        {"role": "user", "content": "Done."},
        {"role": "user", "content": ""},
    ]
    assert "toggle" not in str(row)


def test_a_result_is_shown_where_user_and_agent_use_the_same_id() -> None:
    call = (ToolCall("find", {}, "1"),)
    late = TrajectoryStep("environment", observations=(ToolResult("MINE", "1"),))
    run = run_of(user("Hi.", calls=call), agent("", *call), late, agent("End."))
    assert prefix(list(step_rows(run))[1])[-1]["content"] == "MINE"


def test_an_agent_that_speaks_first_does_not_know_the_query() -> None:
    greeted = run_of(agent("Hello!"), user("Where is it?"), agent("Here."))
    assert [row["query"] for row in step_rows(greeted)] == ["", "Where is it?"]
    stated = run_of(agent("Hello!"), user("Go on."), query="The task.")
    assert [row["query"] for row in step_rows(stated)] == ["The task."]


def test_tools_are_those_of_the_log_else_those_given_else_none() -> None:
    def tools(run: Trajectory, **given: Any) -> Any:
        return Row(next(step_rows(run, **given)), 1).to_item().tools

    assert tools(SHOP) is None
    assert set(tools(SHOP, tools=[TOOL]).names) == {"find"}
    own = run_of(*SHOP.steps, tools=({"name": "own"},))
    assert set(tools(own, tools=[TOOL]).names) == {"own"}
    assert set(tools(run_of(*SHOP.steps, tools=()), tools=[TOOL]).names) == set()


@pytest.mark.parametrize(
    ("n", "expected"), [(2, [0, 1]), (3, [0, 1, 2]), (4, [1, 2, 3]), (10, [2, 5, 7])]
)
def test_quartiles_are_where_quarters_of_the_steps_are_done(n: int, expected: list[int]) -> None:
    run = run_of(user("Go."), *(agent(f"{i}") for i in range(n)))
    rows = list(step_rows(run, at="quartiles"))
    assert [row["id"] for row in rows] == [f"t4-0-step{i}" for i in expected]
    every = {row["id"]: row for row in step_rows(run)}
    assert all(every[row["id"]] == row for row in rows)
    if n >= 3:
        assert [row["stage"] for row in rows] == ["early", "middle", "late"]


def test_another_number_of_steps_is_refused() -> None:
    with pytest.raises(OptionError, match="--steps: expected a whole number from 1 to 3, got 4"):
        next(step_rows(SHOP, k=4))


# Properties ---------------------------------------------------------------------------------------

NASTY = st.sampled_from(
    [
        '<tool_call>{"name": "x", "arguments": {}}</tool_call>',
        '<function=x>{"a": 1}</function>',
        "<invoke name='x'></invoke>",
        '[TOOL_CALLS] [{"name": "x", "arguments": {}}]',
        "</think>",
        "</Thinking> hm",
        "Thought: x\nAction: find\nAction Input: {}",
        '```json\n{"status": "REJECT"}\n```',
        "\u2028Action: find",
        "a < b",
        "\\u003ctool",
    ]
)
TEXTS = st.one_of(NASTY, st.text(st.characters(codec="utf-8"), max_size=20))
ARGUMENTS = st.dictionaries(TEXTS, TEXTS | st.integers(-9, 9), max_size=3)

SOURCES: list[StepSource] = ["agent", "agent", "user", "environment"]


@st.composite
def runs(draw: st.DrawFn) -> Trajectory:
    """Trajectories of which every message and result has a mark of its step in it."""
    steps: list[TrajectoryStep] = []
    for place in range(draw(st.integers(0, 8))):
        source = draw(st.sampled_from(SOURCES))
        n = draw(st.integers(0, 2)) if source != "environment" else 0
        calls = tuple(
            ToolCall(f"tool{place}", draw(ARGUMENTS), f"{place}.{i}" if i else "") for i in range(n)
        )
        answers = tuple(ToolResult(f"RESULT{place};", call.call_id) for call in calls)
        text = f"TEXT{place};{draw(TEXTS)}"
        steps.append(TrajectoryStep(source, "message", text, "", calls, answers))
    return run_of(*steps)


@given(runs(), st.integers(1, 3))
def test_a_row_shows_all_that_came_before_and_no_later_result(run: Trajectory, k: int) -> None:
    turns = [i for i, step in enumerate(run.steps) if step.source == "agent"]
    rows = list(step_rows(run, k=k))
    assert len(rows) == max(0, len(turns) - k + 1)
    for row, turn in zip(rows, turns, strict=False):
        text = json.dumps(row)
        for place, step in enumerate(run.steps):
            assert (f"TEXT{place};" in row["trajectory_prefix_json"]) == (place < turn)
            is_seen = place < turn and step.source == "agent" and bool(step.calls)
            assert (f"RESULT{place};" in text) == is_seen
            if place > turn and step.source != "agent":
                assert f"TEXT{place};" not in text


def _bare(calls: Any) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in calls]


@given(runs(), st.integers(1, 3))
def test_a_prediction_reads_as_what_the_agent_did(run: Trajectory, k: int) -> None:
    turns = [step for step in run.steps if step.source == "agent"]
    for i, row in enumerate(step_rows(run, k=k)):
        item = Row(row, 1).to_item()
        assert item.prediction.problems == ()
        assert item.condition.horizon == k
        done = turns[i : i + k]
        assert [step.thought for step in item.prediction.steps] == [step.text for step in done]
        read = [_bare(step.calls) for step in item.prediction.steps]
        assert read == [_bare(step.calls) for step in done]
        before = [call.name for message in item.trajectory for call in message_calls(message)]
        assert before == [call.name for step in turns[:i] for call in step.calls]
