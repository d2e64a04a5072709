"""Results of τ-bench and τ²-bench, written here by their published data models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from apbjudge import RowError
from apbjudge.records.trajectories import LogPlace, Outcome, Trajectory
from apbjudge.trajectories.formats.tau import TAU2, TAU_BENCH
from apbjudge.trajectories.reading import detect, read_log


def tau(task_id: int = 3, trial: int | None = 1, **more: Any) -> dict[str, Any]:
    return {
        "task_id": task_id,
        "trial": trial,
        "reward": 1.0,
        "info": {
            "task": {"instruction": "You want to fly.", "actions": []},
            "source": "user",
            "user_cost": 0.25,
        },
        "traj": [
            {"role": "system", "content": "Policy."},
            {"role": "user", "content": "Hi, I want to fly."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c",
                        "type": "function",
                        "function": {"name": "find", "arguments": '{"to": "TRS"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c", "name": "find", "content": "[]"},
            {"role": "assistant", "content": "No flights."},
            {"role": "user", "content": "###STOP###"},
        ],
        **more,
    }


def simulation(**more: Any) -> dict[str, Any]:
    return {
        "id": "5f0c",
        "task_id": "7",
        "trial": 0,
        "seed": 42,
        "duration": 9.5,
        "termination_reason": "user_stop",
        "agent_cost": 0.5,
        "user_cost": None,
        "reward_info": {"reward": 0.0, "db_check": {"db_match": False}, "nl_assertions": None},
        "messages": [
            {"role": "assistant", "content": "Hello!", "tool_calls": None, "turn_idx": 0},
            {"role": "user", "content": "My phone is offline."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "a", "name": "look_up", "arguments": {"n": 1}, "requestor": "assistant"},
                    {"id": "b", "name": "look_up", "arguments": {"n": 2}, "requestor": "assistant"},
                ],
            },
            {
                "role": "tool",
                "tool_messages": [
                    {"role": "tool", "id": "b", "content": "B", "requestor": "assistant"},
                    {"role": "tool", "id": "a", "content": "no", "error": True},
                ],
            },
            {
                "role": "user",
                "content": None,
                "tool_calls": [{"id": "u", "name": "reboot", "arguments": {}, "requestor": "user"}],
            },
            {"role": "tool", "id": "u", "content": "on", "requestor": "user", "error": False},
            {"role": "assistant", "content": "Solved?"},
            {"role": "user", "content": "###STOP###"},
        ],
        **more,
    }


AROUND: dict[str, Any] = {
    "timestamp": "2026-05-14",
    "info": {
        "agent_info": {"implementation": "llm_agent", "llm": "m-1"},
        "environment_info": {
            "domain_name": "telecom",
            "policy": "Be kind.",
            "tool_defs": {"look_up": {"name": "look_up"}},
        },
    },
    "tasks": [{"id": "6"}, {"id": "7", "purpose": "It is offline."}],
}


def read(entry: Mapping[str, Any], around: Mapping[str, Any] = AROUND) -> Trajectory:
    format_ = TAU_BENCH if "traj" in entry else TAU2
    assert format_.score(entry)
    return format_.read(entry, LogPlace(format_.name, file="x.json", line=4), around)


# τ-bench -----------------------------------------------------------------------------------------


def test_a_result_of_tau_bench() -> None:
    run = read(tau(reward_version=2))
    assert (run.trajectory_id, run.case_id, run.trial, run.tested_model) == ("3-1", "3", 1, "")
    assert (run.query, run.system_prompt) == ("Hi, I want to fly.", "Policy.")
    assert run.final_answer == "No flights."
    assert run.outcome == Outcome(1.0)
    assert run.usage == {"user_cost": 0.25}
    assert run.task == {"instruction": "You want to fly.", "actions": []}
    assert run.extra == {"source": "user", "reward_version": 2}
    assert [(s.source, s.kind, len(s.observations)) for s in run.steps] == [
        *(("user", "message", 0), ("agent", "call", 1), ("agent", "message", 0)),
        ("user", "message", 0),
    ]
    assert run.steps[1].calls[0].arguments == {"to": "TRS"}
    assert run.remarks == {}


def test_a_run_of_tau_bench_that_raised_is_not_the_models_fault() -> None:
    run = read(tau(traj=[], reward=0.0, info={"error": "Connection reset", "traceback": "…"}))
    assert run.infrastructure_error == "Connection reset"
    assert run.steps == ()
    assert run.extra == {"traceback": "…"}


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        (tau(traj=[]), "traj"),
        (tau(traj=[None]), "traj.0"),
        (tau(task_id=None), "task_id"),  # type: ignore[arg-type]
        (tau(info=[]), "info"),
        (tau(trial="x"), "trial"),  # type: ignore[arg-type]
        (tau(info={"user_cost": "much"}), "user_cost"),
        (simulation(messages=None, ticks=[]), "messages"),
        (simulation(task_id={}), "task_id"),
        (simulation(termination_reason=7), "termination_reason"),
    ],
)
def test_results_that_cannot_be_read_name_the_field(entry: dict[str, Any], field: str) -> None:
    with pytest.raises(RowError) as raised:
        read(entry)
    assert raised.value.field == field


# τ²-bench ----------------------------------------------------------------------------------------


def test_a_simulation_of_tau2() -> None:
    run = read(simulation())
    assert (run.trajectory_id, run.case_id, run.trial) == ("5f0c", "7", 0)
    assert (run.tested_model, run.setting) == ("m-1", "telecom")
    assert (run.query, run.system_prompt) == ("My phone is offline.", "Be kind.")
    assert run.tools == ({"name": "look_up"},)
    assert (run.final_answer, run.termination, run.infrastructure_error) == (
        "Solved?",
        "user_stop",
        "",
    )
    assert run.outcome == Outcome(0.0)
    assert run.usage == {"agent_cost": 0.5}
    assert run.remarks == {"parallel calls": 1, "user-side calls": 1}
    _, _, calls, own, *_ = run.steps
    assert [of.arguments for of in calls.calls] == [{"n": 1}, {"n": 2}]
    assert [(of.call_id, of.is_error) for of in calls.observations] == [("b", None), ("a", True)]
    assert (own.source, own.calls[0].name, own.observations[0].content) == ("user", "reboot", "on")
    assert own.observations[0].is_error is False
    assert run.steps[0].extra == {"turn_idx": 0}
    assert run.extra["reward_info"] == {"db_check": {"db_match": False}}
    assert (run.extra["seed"], run.extra["duration"]) == (42, 9.5)
    assert run.task == {"id": "7", "purpose": "It is offline."}


def test_infrastructure_errors_of_tau2_are_named() -> None:
    broken = simulation(termination_reason="infrastructure_error", messages=[], reward_info=None)
    run = read(broken)
    assert (run.infrastructure_error, run.outcome) == ("infrastructure_error", None)
    assert read(simulation(termination_reason="too_many_errors")).infrastructure_error == ""


def test_a_simulation_alone_says_nothing_of_the_agent() -> None:
    run = read(simulation(policy="Own."), {})
    assert (run.tested_model, run.setting, run.tools, run.system_prompt) == ("", "", None, "Own.")


# Files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lines", [True, False])
def test_results_of_tau_bench_are_a_list_or_lines(tmp_path: Path, lines: bool) -> None:
    runs = [tau(task, trial) for task in range(2) for trial in range(2)]
    path = tmp_path / "results.json"
    path.write_text("\n".join(map(json.dumps, runs)) if lines else json.dumps(runs, indent=2))
    assert detect(path) == "tau-bench"
    read_runs = [entry.content for entry in read_log(path)]
    assert [run.trajectory_id for run in read_runs if isinstance(run, Trajectory)] == [
        *("0-0", "0-1", "1-0", "1-1")
    ]


@pytest.mark.parametrize(
    "order", [("info", "tasks", "simulations"), ("simulations", "tasks", "info")]
)
def test_results_of_tau2_are_one_object(tmp_path: Path, order: tuple[str, ...]) -> None:
    runs = [simulation(id="s1"), simulation(id="s2", task_id=None), simulation(id="s3")]
    values = {**AROUND, "simulations": runs}
    path = tmp_path / "results.json"
    path.write_text(json.dumps({name: values[name] for name in order}))
    assert detect(path) == "tau2"
    first, bad, last = (entry.content for entry in read_log(path))
    assert isinstance(bad, RowError)
    for run, trajectory_id in ((first, "s1"), (last, "s3")):
        assert isinstance(run, Trajectory)
        assert (run.trajectory_id, run.tested_model) == (trajectory_id, "m-1")
        assert run.place.format == "tau2"
