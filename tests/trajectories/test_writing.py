from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.errors import RowError
from apbjudge.records.trajectories import (
    Execution,
    LogPlace,
    Outcome,
    Retrieval,
    RetrievedTool,
    ToolCall,
    ToolResult,
    Trajectory,
    TrajectoryStep,
)
from apbjudge.trajectories.formats.atif import ATIF
from apbjudge.trajectories.writing import left_out, to_atif, to_messages

PLACE = LogPlace(format="test", file="trajectory.jsonl", line=3)
BACK = LogPlace(format="atif", version="1.8", file="out.jsonl", line=1)

texts = st.text(st.characters(codec="utf-8"), max_size=8)
ids = st.text("ab1", min_size=1, max_size=2)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
objects = st.dictionaries(texts | st.sampled_from(["extra", "agent", "calls"]), values, max_size=2)
step_extras = objects | st.fixed_dictionaries(
    {},
    optional={
        "timestamp": st.sampled_from(["2026-01-02T03:04:05Z", "yesterday", 7]),
        "model_name": st.sampled_from(["m", 1, None]),
        "metrics": st.sampled_from([{"prompt_tokens": 3}, {"prompt_tokens": "3"}, {"new": 1}, []]),
    },
)
calls = st.builds(ToolCall, texts, values, ids | st.just(""), texts)
results = st.builds(ToolResult, values, ids | st.just(""), texts, st.none() | st.booleans())
retrievals = st.builds(
    Retrieval,
    st.booleans(),
    tools=st.none() | st.tuples() | st.tuples(st.builds(RetrievedTool, texts, st.tuples(texts))),
)
executions = st.builds(Execution, st.booleans(), output_value=values)
steps = st.builds(
    TrajectoryStep,
    st.sampled_from(["system", "user", "agent", "environment"]),
    st.sampled_from(["message", "call", "retrieve", "answer", "invalid"]),
    texts,
    texts,
    st.lists(calls, max_size=3).map(tuple),
    st.lists(results, max_size=3).map(tuple),
    st.none() | retrievals,
    st.none() | executions,
    step_extras,
)
agents = st.fixed_dictionaries(
    {}, optional={"name": texts | st.just("unknown"), "version": texts, "extra": values}
)
trajectories = st.builds(
    Trajectory,
    trajectory_id=ids,
    case_id=ids,
    tested_model=texts | st.sampled_from(["unknown", "model"]),
    trial=st.none() | st.integers(0, 5),
    setting=texts,
    query=texts,
    system_prompt=texts,
    tools=st.none() | st.lists(values | objects, max_size=2).map(tuple),
    steps=st.lists(steps, max_size=4).map(tuple),
    final_answer=st.none() | texts,
    termination=texts,
    infrastructure_error=texts,
    outcome=st.none() | st.builds(Outcome, st.none() | st.floats(0, 1), st.none() | st.booleans()),
    usage=st.dictionaries(
        st.sampled_from(["total_prompt_tokens", "total_cost_usd", "total_steps", "time"]),
        st.sampled_from([0.0, 3.0, 1.5]),
    ),
    place=st.just(PLACE),
    remarks=st.dictionaries(st.sampled_from(["attachments", "sub-agents"]), st.integers(1, 3)),
    extra=objects | st.fixed_dictionaries({"agent": agents, "final_metrics": values}),
)


def written(trajectory: Trajectory) -> dict[str, Any]:
    return orjson.loads(orjson.dumps(to_atif(trajectory)))


def example(**changes: Any) -> Trajectory:
    made = Trajectory(
        trajectory_id="run",
        case_id="case",
        tested_model="model",
        query="Add 1 and 2.",
        system_prompt="You add.",
        tools=({"type": "function", "function": {"name": "add"}},),
        steps=(
            TrajectoryStep("user", text="Add 1 and 2."),
            TrajectoryStep(
                "agent",
                "call",
                "Both at once.",
                "Let me think.",
                (ToolCall("add", {"x": 1}, "c1"), ToolCall("add", "{x", "c2", "no JSON object")),
                (ToolResult({"sum": 3}, "c2", "add", True), ToolResult("3", "c1")),
            ),
            TrajectoryStep("agent", text="3"),
        ),
        final_answer="3",
        outcome=Outcome(1.0),
        usage={"total_prompt_tokens": 12.0},
        place=PLACE,
    )
    return replace(made, **changes)


# ATIF ---------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(trajectories)
def test_what_is_written_as_atif_is_read_again_whole(trajectory: Trajectory) -> None:
    place = replace(BACK, version="")
    assert ATIF.read(written(trajectory), place, {}) == replace(trajectory, place=BACK)


@given(trajectories)
def test_what_is_written_keeps_the_rules_of_atif(trajectory: Trajectory) -> None:
    row = written(trajectory)
    assert row.keys() == {
        *("schema_version", "trajectory_id", "agent", "steps", "final_metrics", "extra")
    }
    assert isinstance(row["agent"]["name"], str)
    assert isinstance(row["agent"]["version"], str)
    assert [step["step_id"] for step in row["steps"]] == list(range(1, len(row["steps"]) + 1))
    assert row["steps"]
    agents_only = {"reasoning_content", "tool_calls", "model_name", "metrics"}
    for step in row["steps"]:
        assert step["source"] in ("system", "user", "agent")
        assert isinstance(step["message"], str)
        assert step["source"] == "agent" or not agents_only & step.keys()
        own = [call["tool_call_id"] for call in step.get("tool_calls", [])]
        assert "" not in own
        assert all(isinstance(call["arguments"], dict) for call in step.get("tool_calls", []))
        for result in step.get("observation", {}).get("results", []):
            assert result.get("source_call_id", own[0] if own else None) in (own or [None])
            assert isinstance(result["content"], str | None)
    totals = row["final_metrics"].get("total_prompt_tokens", 0)
    assert totals == int(totals)


def test_the_fields_that_atif_has_are_used() -> None:
    row = to_atif(example())
    assert [step["source"] for step in row["steps"]] == ["system", "user", "agent", "agent"]
    assert row["agent"]["model_name"] == "model"
    assert row["agent"]["tool_definitions"] == [{"type": "function", "function": {"name": "add"}}]
    step = row["steps"][2]
    assert (step["message"], step["reasoning_content"]) == ("Both at once.", "Let me think.")
    assert [call["tool_call_id"] for call in step["tool_calls"]] == ["c1", "c2"]
    assert [r["source_call_id"] for r in step["observation"]["results"]] == ["c2", "c1"]
    assert row["final_metrics"] == {"total_prompt_tokens": 12}
    assert row["extra"]["apbjudge"]["outcome"]["reward"] == 1.0


# Messages -----------------------------------------------------------------------------------------


def test_messages_are_those_of_openai() -> None:
    row = to_messages(example(trial=0, setting="block", termination="done"))
    assert (row["id"], row["case_id"]) == ("run", "case")
    assert (row["reward"], row["trial"], row["setting"]) == (1.0, 0, "block")
    assert "success" not in row
    system, user, first, two, one, last = row["messages"]
    assert system == {"role": "system", "content": "You add."}
    assert user == {"role": "user", "content": "Add 1 and 2."}
    assert [call["function"]["arguments"] for call in first["tool_calls"]] == ['{"x":1}', "{x"]
    assert two == {"role": "tool", "tool_call_id": "c2", "name": "add", "content": '{"sum":3}'}
    assert one == {"role": "tool", "tool_call_id": "c1", "content": "3"}
    assert last == {"role": "assistant", "content": "3"}


def ring(result: Any) -> TrajectoryStep:
    called = (ToolCall("ring", {}, "u1"),)
    return TrajectoryStep("user", "call", calls=called, observations=(ToolResult(result, "u1"),))


def test_messages_of_the_environment_and_of_users() -> None:
    odd, listed = (ToolCall("tick"), ToolCall("tock")), (ToolResult([1]),)
    notice = TrajectoryStep("environment", text="Closed.", calls=odd, observations=listed)
    run = example(
        system_prompt="", steps=(ring(None), notice, TrajectoryStep("system", text="Stop."))
    )
    asked, rung, closed, told, stop = to_messages(run)["messages"]
    assert (asked["role"], asked["tool_calls"][0]["function"]["name"]) == ("user", "ring")
    assert rung == {"role": "tool", "tool_call_id": "u1", "content": ""}
    assert closed == {"role": "tool", "content": "Closed."}
    assert told == {"role": "tool", "content": "[1]"}
    assert stop == {"role": "system", "content": "Stop."}
    assert left_out(run, "messages")["calls of the environment"] == 2


def test_what_is_nested_too_deeply_is_refused() -> None:
    deep = orjson.loads(b'{"a":' * 500 + b"1" + b"}" * 500)
    run = example(steps=(TrajectoryStep("agent", "call", calls=(ToolCall("add", deep, "c1"),)),))
    for write in (to_messages, to_atif):
        with pytest.raises(RowError, match="expected values that can be written as JSON"):
            write(run)


# What is lost -------------------------------------------------------------------------------------


def test_what_a_format_cannot_hold_is_counted() -> None:
    search = TrajectoryStep("agent", "retrieve", retrieval=Retrieval(), execution=Execution())
    steps = (*example().steps, ring(""), replace(search, extra={"turn": 2}))
    run = example(steps=steps, extra={"seed": 1, "host": "x"}, trial=1)
    common = "retrieval facts|execution facts|kinds of steps|results as values|marks of errors"
    own = "user-side calls|unreadable arguments|names of answering tools"
    own += "|results for calls of other steps|outcome|case and trial"
    messages = {"reasoning": 1, "other fields of steps": 1, "other fields": 2}
    assert left_out(run, "messages") == dict.fromkeys(common.split("|"), 1) | messages
    assert left_out(run, "atif") == dict.fromkeys(f"{common}|{own}".split("|"), 1)
