"""Trajectories as chat messages: every shape, every way of joining results; nothing is lost."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import pytest

from apbjudge import RowError
from apbjudge.records.trajectories import (
    LOSSES,
    LogPlace,
    Outcome,
    ToolCall,
    ToolResult,
    Trajectory,
    TrajectoryStep,
    trajectory_of,
    trajectory_row,
)
from apbjudge.trajectories.conservation import Conservation
from apbjudge.trajectories.formats.messages import MESSAGES
from apbjudge.trajectories.outcome import OutcomeEvaluator
from apbjudge.trajectories.writing import to_messages

PLACE = LogPlace("messages", file="runs.jsonl", line=3)


def read(entry: Mapping[str, Any] | list[Any], place: LogPlace = PLACE) -> Trajectory:
    return MESSAGES.read({"messages": entry} if isinstance(entry, list) else entry, place, {})


def user(text: Any = "Where is my order?", **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **more}


def agent(text: Any = None, *calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    listed = {"tool_calls": list(calls)} if calls else {}
    return {"role": "assistant", "content": text, **listed, **more}


def call(
    call_id: str | None = "c1", name: str = "find", arguments: Any = '{"id": 7}'
) -> dict[str, Any]:
    named = {} if call_id is None else {"id": call_id}
    return {**named, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool(call_id: str | None = "c1", content: Any = "found", **more: Any) -> dict[str, Any]:
    named = {} if call_id is None else {"tool_call_id": call_id}
    return {"role": "tool", **named, "content": content, **more}


def shape(run: Trajectory) -> list[tuple[str, str, list[str], list[Any]]]:
    """Source, text, names of calls and contents of results of each step."""
    return [
        (of.source, of.text, [c.name for c in of.calls], [o.content for o in of.observations])
        for of in run.steps
    ]


# Whole trajectories -------------------------------------------------------------------------------


def test_a_run_of_chat_messages() -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": "Use tools."},
        *(user(), agent("One moment.", call()), tool(name="find")),
        *(agent("It is in Trieste."), user("Thanks")),
    ]
    facts = {"id": "r1", "case_id": 12, "model": "m", "trial": 2, "setting": "block", "reward": 1}
    facts |= {"tools": [{"name": "find"}], "stop_reason": "done", "note": "kept"}
    usage = {"total_tokens": 5, "details": {"cached": 2}, "model": "m"}
    run = read({**facts, "usage": usage, "messages": messages})
    assert run == Trajectory(
        trajectory_id="r1",
        case_id="12",
        tested_model="m",
        trial=2,
        setting="block",
        query="Where is my order?",
        system_prompt="Be brief.\n\nUse tools.",
        tools=({"name": "find"},),
        steps=(
            TrajectoryStep("user", text="Where is my order?", sources=(2,)),
            TrajectoryStep(
                "agent",
                "call",
                "One moment.",
                calls=(ToolCall("find", {"id": 7}, "c1"),),
                observations=(ToolResult("found", "c1", "find"),),
                sources=(3, 4),
            ),
            TrajectoryStep("agent", text="It is in Trieste.", sources=(5,)),
            TrajectoryStep("user", text="Thanks", sources=(6,)),
        ),
        final_answer="It is in Trieste.",
        termination="done",
        outcome=Outcome(1.0),
        usage={"total_tokens": 5.0, "details.cached": 2.0},
        place=PLACE,
        extra={"note": "kept"},
    )
    assert trajectory_of(trajectory_row(run)) == run


def test_tools_that_the_api_runs_itself_are_calls() -> None:
    search = {"type": "web_search_call", "id": "w", "action": {"query": "trains"}}
    hosted = {"type": "mcp_call", "id": "m", "name": "find", "arguments": "{}", "output": "7"}
    custom = {"type": "custom_tool_call", "call_id": "k", "name": "code", "input": "print(1)"}
    answer = {"type": "custom_tool_call_output", "call_id": "k", "output": "1"}
    run = read([user(), search, hosted, custom, answer])
    step = run.steps[1]
    assert step.calls == (
        ToolCall("web_search", {"query": "trains"}, "w"),
        ToolCall("find", {}, "m"),
        ToolCall("code", "print(1)", "k"),
    )
    assert [of.content for of in step.observations] == ["7", "1"]
    assert run.remarks == {"parallel calls": 1, "calls without results": 1}


def test_blocks_of_anthropic_in_one_message_and_a_question_beside_a_result() -> None:
    thought = {"type": "thinking", "thinking": "Search.", "signature": "x"}
    hidden = {"type": "redacted_thinking", "data": "x"}
    used = {"type": "tool_use", "id": "t", "name": "find", "input": {"id": 7}}
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    answer = {"type": "tool_result", "tool_use_id": "t", "content": parts, "is_error": True}
    run = read([user(), agent([thought, hidden, used]), user([answer, {"text": "And?"}])])
    _, called, asked = run.steps
    assert (called.thought, called.observations) == (
        "Search.",
        (ToolResult("a\nb", "t", is_error=True),),
    )
    assert (asked.source, asked.text, run.remarks) == ("user", "And?", {"cut content": 1})


# Which call a result answers ---------------------------------------------------------------------


def test_results_without_ids_join_by_name_then_in_order() -> None:
    calls = (call(None, "f"), call(None, "g"), call(None, "f"))
    run = read(
        [
            agent(None, call(None, "f")),
            agent(None, *calls),
            tool(None, "g1", name="g"),
            tool(None, "any"),
            tool(None, "f2", name="f"),
            tool(None, "f0", name="f"),
            tool(None, "none", name="f"),
            tool(None, "none"),
        ]
    )
    assert shape(run) == [
        ("agent", "", ["f"], ["f0"]),
        ("agent", "", ["f", "g", "f"], ["g1", "any", "f2"]),
        ("environment", "", [], ["none"]),
        ("environment", "", [], ["none"]),
    ]
    assert run.remarks == {"parallel calls": 1, "results without calls": 2}


def test_a_result_without_an_id_gets_that_of_the_call_it_answers() -> None:
    log = [
        *(user(), agent(None, call("a", "find"), call("b", "book"), call("c", "find"))),
        *(tool(None, "1", name="find"), tool(None, "2", name="book"), tool(None, "3")),
        *(agent(None, call(None)), tool(None, "4"), agent("done")),
    ]
    run = read({"messages": log, "success": True})
    results = [(of.content, of.call_id) for step in run.steps for of in step.observations]
    assert results == [("1", "a"), ("2", "b"), ("3", "c"), ("4", "")]
    assert OutcomeEvaluator().evaluate(run).measures["unanswered calls"] == 0
    written = to_messages(run)["messages"]
    assert [m.get("tool_call_id") for m in written if m["role"] == "tool"] == ["a", "b", "c", None]
    # of another format, whose results are in the step of their call
    steps = (TrajectoryStep("agent", "call", "", "", (ToolCall("f", {}, "x"),), (ToolResult(1),)),)
    assert OutcomeEvaluator().evaluate(replace(run, steps=steps)).measures["unanswered calls"] == 0


def test_ids_that_come_again_are_of_the_latest_step() -> None:
    once = [agent(None, call("0")), agent(None, call("0")), tool("0", "second"), tool("0", "again")]
    twice = [agent(None, call("0"), call("0")), *(tool("0", of) for of in "xyz")]
    run = read([*once, *twice])
    answers = [[of.content for of in step.observations] for step in run.steps]
    assert answers == [[], ["second", "again"], ["x", "y", "z"]]
    assert run.remarks == {"parallel calls": 1, "calls without results": 1}


@pytest.mark.parametrize(
    ("arguments", "expected", "complaint"),
    [
        ('{"a": 1}', {"a": 1}, ""),
        (None, None, ""),
        ('{"a": ', '{"a": ', "end of data"),
        ('{"a": 1e999}', '{"a": 1e999}', "infinity"),
        ([1], [1], "got list"),
        ("[" * 99999, "[" * 99999, "depth"),
    ],
)
def test_arguments_are_objects_or_what_came(arguments: Any, expected: Any, complaint: str) -> None:
    run = read([agent(None, call(arguments=arguments)), tool()])
    made = run.steps[0].calls[0]
    assert made.arguments == expected
    assert complaint in made.parse_error
    assert bool(made.parse_error) == bool(complaint)
    assert run.remarks == ({"unreadable arguments": 1} if complaint else {})


# Content -----------------------------------------------------------------------------------------


def test_attachments_are_counted_and_kept() -> None:
    picture = {"type": "image_url", "image_url": {"url": "x"}}
    parts = [{"type": "text", "text": "See"}, picture, "this"]
    result = [{"type": "text", "text": "shot"}, {"type": "image", "source": {}}]
    run = read([user(parts), agent(None, call()), tool(content=result)])
    assert shape(run)[0][1] == "See\nthis"
    assert run.steps[0].extra == {"content": parts}
    assert run.steps[1].observations[0].content == "shot"
    assert run.steps[1].extra == {"results": [{"call_id": "c1", "content": result}]}
    assert run.remarks == {"attachments": 2}


@pytest.mark.parametrize(
    ("message", "is_unread"),
    [
        ({"role": "assistant", "content": [{"type": "hunch", "name": "f"}]}, 1),
        ({"role": "assistant", "content": "Hm.", "toolCalls": [call()]}, 1),
        ({"role": "user", "parts": [{"type": "data-weather", "data": {"sky": "grey"}}]}, 1),
        ({"role": "assistant", "content": "", "id": "m", "usage": {"n": 1}, "model": "x"}, 0),
        ({"role": "assistant", "content": [{"type": "image", "source": {}}]}, 0),
    ],
)
def test_what_is_not_read_of_a_message_is_counted(message: dict[str, Any], is_unread: int) -> None:
    raw = {"messages": [user("Where?"), message]}
    remarks = Conservation(accepts=1).checked(raw, read(raw)).remarks
    assert any(remarks.get(name) for name in LOSSES) == is_unread


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, None),
        ({"is_error": False, "error": "x"}, False),
        ({"error": "timeout"}, True),
        ({"status": "error"}, True),
        ({"status": "success"}, False),
        ({"status": []}, None),
    ],
)
def test_errors_are_what_the_log_marks(more: dict[str, Any], expected: bool | None) -> None:
    run = read([agent(None, call()), tool(**more)])
    assert run.steps[0].observations[0].is_error is expected


def test_reasoning_is_kept_apart() -> None:
    run = read(
        [agent("So.", reasoning_content="Because."), agent("Then.", reasoning={"effort": 1})]
    )
    assert [step.thought for step in run.steps] == ["Because.", ""]
    assert run.steps[1].extra == {"reasoning": {"effort": 1}}
    refused = read([agent(None, refusal="No."), agent([{"type": "refusal", "refusal": "Never."}])])
    assert [step.text for step in refused.steps] == ["No.", "Never."]


def test_unknown_fields_and_messages_are_kept() -> None:
    unknown = [{"role": "narrator", "content": "x"}, {"type": "ping"}]
    odd_call = agent(None, {**call(), "signature": "s"}, at=2, audio=None)
    log = [user(at=1), *unknown, odd_call, tool(at=3)]
    run = read({"messages": log, "id": "b", "trajectory_id": "a", "output": "o"})
    kept = {"calls": [{"call_id": "c1", "signature": "s"}], "results": [{"call_id": "c1", "at": 3}]}
    assert [step.extra for step in run.steps] == [{"at": 1}, {"at": 2, **kept}]
    assert run.extra == {"id": "b", "output": "o", "unknown_steps": unknown}
    assert (run.remarks, run.trajectory_id) == ({"unknown steps": 2}, "a")


# Fields of the trajectory -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({}, ("runs-3", "runs-3")),
        ({"case_id": "k"}, ("k-3", "k")),
        ({"task_id": 0, "trial": "2"}, ("0-2", "0")),
        ({"task_id": 0, "trial": 2.0}, ("0-2", "0")),
        ({"trajectory_id": "t", "case_id": "k"}, ("t", "k")),
    ],
)
def test_ids_are_stated_or_made_of_the_place(
    entry: dict[str, Any], expected: tuple[str, str]
) -> None:
    run = read({**entry, "messages": [user()]})
    assert (run.trajectory_id, run.case_id) == expected


@pytest.mark.parametrize(
    ("stated", "expected", "extra"),
    [
        ({"reward": 0.5, "success": True}, Outcome(0.5, success=True), {}),
        ({"outcome": True}, Outcome(success=True), {}),
        ({"outcome": 1}, Outcome(1.0), {}),
        ({"outcome": {"success": True, "by": "x"}}, Outcome(success=True), {"success", "by"}),
        ({"outcome": "fail", "reward": 0.2}, Outcome(0.2, success=False), {}),
        ({"outcome": "all passed"}, None, {}),
    ],
)
def test_outcomes_are_as_stated_and_never_guessed(
    stated: dict[str, Any], expected: Outcome | None, extra: Collection[str]
) -> None:
    run = read({**stated, "messages": [user()]})
    assert (run.outcome, run.extra.get("outcome", {}).keys()) == (expected, set(extra))


def test_tools_are_as_in_the_log() -> None:
    for tools, expected in ((None, None), ([], ()), ('[{"name": "a"}]', ({"name": "a"},))):
        assert read({"messages": [user()], "tools": tools}).tools == expected


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [user(), None]}, "messages.1"),
        ({"messages": [user([["a"]])]}, "messages.0.content.0"),
        ({"messages": [tool(is_error="x")]}, "messages.0.is_error"),
        ({"messages": [user()], "id": " "}, "id"),
        ({"messages": [user()], "trial": 1e300}, "trial"),
    ],
)
def test_runs_that_cannot_be_read_name_the_field(entry: dict[str, Any], field: str) -> None:
    with pytest.raises(RowError) as raised:
        read(entry)
    assert raised.value.field == field


# Time squared in their number would take hours here.


def test_runs_with_many_steps_are_read() -> None:
    n = 10_000
    made = (agent(None, call(None, f"f{i % 9}")) for i in range(n))
    run = read([*made, *(tool(None, name=f"f{i % 9}") for i in range(n))])
    assert run.remarks == {}
    assert [len(step.observations) for step in run.steps] == [1] * n


def test_steps_with_many_parallel_calls_are_read() -> None:
    n = 10_000
    run = read([agent(None, *(call(None) for _ in range(n))), *(tool(None) for _ in range(n))])
    assert len(run.steps[0].observations) == n
    assert run.remarks == {"parallel calls": 1}
