from __future__ import annotations

from typing import Any

import pytest

from apbjudge.errors import RowError
from apbjudge.records.trajectories import LogPlace, ToolCall, ToolResult, Trajectory, TrajectoryStep
from apbjudge.trajectories.formats.atif import ATIF

PLACE = LogPlace(format="atif", file="logs/first.json", line=7)


def entry(*steps: Any, **changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "schema_version": "ATIF-v1.8",
        "trajectory_id": "run",
        "agent": {"name": "terminus", "version": "2.0", "model_name": "model"},
        "steps": [{"step_id": n, **step} for n, step in enumerate(steps, 1)],
    }
    return {name: value for name, value in (made | changes).items() if value is not ...}


def read(*steps: Any, **changes: Any) -> Trajectory:
    return ATIF.read(entry(*steps, **changes), PLACE, {})


def user(text: Any = "Add 1 and 2.") -> dict[str, Any]:
    return {"source": "user", "message": text}


def agent(text: Any = "", **fields: Any) -> dict[str, Any]:
    return {"source": "agent", "message": text, **fields}


def call(call_id: str = "c1", **fields: Any) -> dict[str, Any]:
    return {"tool_call_id": call_id, "function_name": "add", "arguments": {"x": 1}} | fields


def results(*given: Any) -> dict[str, Any]:
    return {"results": list(given)}


# What is read -------------------------------------------------------------------------------------


def test_a_whole_run() -> None:
    totals = {"total_prompt_tokens": 12, "total_cost_usd": 0.5, "total_steps": 5}
    trajectory = read(
        {"source": "system", "message": "You add."},
        {"source": "system", "message": "Be brief."},
        user(),
        agent(
            "Both at once.",
            reasoning_content="Let me think.",
            timestamp="2026-01-02T03:04:05Z",
            tool_calls=[call("c1"), call("c2", function_name="log", extra={"timeout": 5})],
            observation=results(
                {"source_call_id": "c2", "content": "done"},
                {"content": "a notice"},
                {"source_call_id": "c1", "content": "3", "extra": {"score": 0.5}},
            ),
        ),
        agent("3"),
        final_metrics=totals,
        notes="made by hand",
    )
    assert trajectory.system_prompt == "You add.\n\nBe brief."
    assert (trajectory.query, trajectory.final_answer) == ("Add 1 and 2.", "3")
    assert (trajectory.trajectory_id, trajectory.case_id) == ("run", "run")
    assert trajectory.tested_model == "model"
    assert trajectory.place == LogPlace("atif", "1.8", "logs/first.json", 7)
    assert trajectory.usage == {"total_prompt_tokens": 12, "total_cost_usd": 0.5}
    assert trajectory.outcome is None
    assert trajectory.remarks == {"parallel calls": 1, "results without calls": 1}
    agent_ = {"name": "terminus", "version": "2.0"}
    assert trajectory.extra == {"notes": "made by hand", "final_metrics": totals, "agent": agent_}
    _, called, _ = trajectory.steps
    assert called == TrajectoryStep(
        "agent",
        "call",
        "Both at once.",
        "Let me think.",
        (ToolCall("add", {"x": 1}, "c1"), ToolCall("log", {"x": 1}, "c2")),
        (ToolResult("done", "c2"), ToolResult("3", "c1"), ToolResult("a notice")),
        extra={
            "timestamp": "2026-01-02T03:04:05Z",
            "calls": [{"call_id": "c2", "extra": {"timeout": 5}}],
            "results": [{"call_id": "c1", "extra": {"score": 0.5}}],
        },
        sources=(3,),
    )


def test_the_first_version_of_an_agent_that_is_not_known() -> None:
    summary = {"source": "system", "message": "Compacted."}
    facts: dict[str, Any] = {"schema_version": "ATIF-v1.0", "agent": {"name": "unknown"}}
    made = entry(user(), summary, **facts, trajectory_id=..., session_id="session")
    assert ATIF.score(made)
    run = ATIF.read(made, PLACE, {})
    assert (run.place.version, run.trajectory_id, run.tested_model) == ("1.0", "session", "")
    assert (run.system_prompt, run.steps[1].text) == ("", "Compacted.")


def test_copied_steps_are_left_out() -> None:
    trajectory = read(
        user("Earlier.") | {"is_copied_context": True},
        agent("Done.", is_copied_context=True, metrics={"prompt_tokens": 5}),
        user("Go on."),
        agent("Done again.", metrics={"prompt_tokens": 7, "logprobs": [-0.5]}),
    )
    assert trajectory.query == "Go on."
    assert len(trajectory.steps) == 2
    assert trajectory.remarks == {"copied context": 2}
    assert trajectory.usage == {"total_prompt_tokens": 7}
    assert trajectory.steps[1].extra["metrics"]["logprobs"] == [-0.5]


def test_parts_are_joined_and_pictures_counted() -> None:
    picture = {"type": "image", "source": {"media_type": "image/png", "path": "a.png"}}
    parts = [{"type": "text", "text": "See"}, picture, {"type": "text", "text": "this"}]
    trajectory = read(
        user(parts),
        agent(tool_calls=[call()], observation=results({"source_call_id": "c1", "content": parts})),
    )
    asked, called = trajectory.steps
    assert asked.text == "See\nthis"
    assert asked.extra == {"content": parts}
    assert called.observations == (ToolResult("See\nthis", "c1"),)
    assert called.extra == {"results": [{"call_id": "c1", "content": parts}]}
    assert trajectory.remarks == {"attachments": 2}


def test_no_foreign_field_is_an_outcome() -> None:
    foreign = {"outcome": {"reward": 1}, "reward": 1, "success": True}
    trajectory = read(user(), extra=foreign)
    assert (trajectory.outcome, trajectory.extra["extra"]) == (None, foreign)


# Sub-agents ---------------------------------------------------------------------------------------


def test_sub_agents_are_named_and_not_followed() -> None:
    def inner(own_id: str, other: str) -> dict[str, Any]:
        ref = {"subagent_trajectory_ref": [{"trajectory_id": other}]}
        return entry(agent("in", observation=results(ref)), trajectory_id=own_id)

    refs = [{"trajectory_id": "a"}, {"trajectory_path": "../../secret.json"}]
    trajectory = read(
        user(),
        agent(
            tool_calls=[call()],
            observation=results({"source_call_id": "c1", "subagent_trajectory_ref": refs}),
        ),
        subagent_trajectories=[inner("a", "b"), inner("b", "a")],
    )
    assert trajectory.remarks == {"sub-agents": 2}
    assert len(trajectory.steps) == 2
    assert trajectory.steps[1].observations == (ToolResult("", "c1"),)
    result = {"call_id": "c1", "subagent_trajectory_ref": refs}
    assert trajectory.steps[1].extra["results"] == [result]
    assert [sub["trajectory_id"] for sub in trajectory.extra["subagent_trajectories"]] == ["a", "b"]


# What is unusual ----------------------------------------------------------------------------------


def test_results_without_calls_and_calls_without_results_are_counted() -> None:
    three = [call("c1"), call("c2"), call("c3")]
    trajectory = read(
        agent("ls", tool_calls=None, observation=results({"content": "a.txt"}, {"content": None})),
        agent(tool_calls=three, observation=results({"content": "?"})),
        agent("", observation=results({"source_call_id": "c1", "content": "3"})),
        agent(tool_calls=[call("c4")]),
        agent("", observation=results({"source_call_id": "gone", "content": "late"})),
    )
    first, *_, last = trajectory.steps
    assert (first.kind, first.calls) == ("message", ())
    assert first.observations == (ToolResult("a.txt"), ToolResult(""))
    assert last.observations == (ToolResult("late", "gone"),)
    counts = {"parallel calls": 1, "calls without results": 3, "results without calls": 4}
    assert trajectory.remarks == counts


def test_steps_of_no_known_kind_are_kept_apart() -> None:
    odd = [{"source": "tool", "message": "x"}, "text", {"source": []}, {"message": "x"}]
    trajectory = read(user(), steps=[*odd, user()])
    assert [step.text for step in trajectory.steps] == ["Add 1 and 2."]
    assert trajectory.extra["unknown_steps"] == odd
    assert trajectory.remarks == {"unknown steps": 4}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"schema_version": "ATIF-v2.0"}, "schema_version"),
        ({"agent": {"name": "a", "tool_definitions": "add"}}, "agent.tool_definitions"),
        ({"extra": {"apbjudge": {"outcome": {"reward": "much"}}}}, "outcome.reward"),
        ({"steps": [user(5)]}, "steps.0.message"),
        ({"steps": [agent(tool_calls=["add"])]}, "steps.0.0.tool_calls"),
        ({"steps": [agent(observation={"results": "ok"})]}, "steps.0.observation.results"),
    ],
)
def test_what_cannot_be_read_is_named(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(RowError) as caught:
        read(user(), **changes)
    assert caught.value.field == field
