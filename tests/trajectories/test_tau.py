"""Results of τ-bench and τ²-bench, as they publish their data models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from apbjudge import RowError
from apbjudge.records.trajectories import LogPlace, Outcome, Trajectory
from apbjudge.trajectories.detection import detect
from apbjudge.trajectories.formats.tau import TAU2, TAU_BENCH
from apbjudge.trajectories.reading import read_log

from .test_samples import LOGS

(TAU,) = json.loads((LOGS / "19_tau_bench.json").read_text(encoding="utf-8"))
RESULTS: dict[str, Any] = json.loads((LOGS / "20_tau2.json").read_text(encoding="utf-8"))
(SIMULATION,) = RESULTS["simulations"]
AROUND = {name: RESULTS[name] for name in ("info", "tasks")}


def read(entry: Mapping[str, Any], around: Mapping[str, Any] = AROUND) -> Trajectory:
    format_ = TAU_BENCH if "traj" in entry else TAU2
    assert format_.score(entry)
    return format_.read(entry, LogPlace(format_.name, file="x.json", line=4), around)


def test_what_tau_bench_says_beside_the_messages() -> None:
    run = read(TAU | {"reward_version": 2})
    assert (run.trajectory_id, run.case_id, run.trial, run.tested_model) == ("3-0", "3", 0, "")
    assert (run.outcome, run.usage) == (Outcome(1.0), {"user_cost": 0.25})
    assert run.task == TAU["info"]["task"]
    assert run.extra == {"source": "user", "reward_version": 2}


def test_a_run_of_tau_bench_that_raised_is_not_the_models_fault() -> None:
    info = {"error": "Connection reset", "traceback": "…"}
    run = read(TAU | {"traj": [], "reward": 0.0, "info": info})
    assert (run.infrastructure_error, run.steps) == ("Connection reset", ())
    assert run.extra == {"traceback": "…"}


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        (TAU | {"traj": []}, "traj"),
        (TAU | {"info": {"user_cost": "much"}}, "user_cost"),
        (SIMULATION | {"messages": None, "ticks": []}, "messages"),
        (SIMULATION | {"task_id": {}}, "task_id"),
    ],
)
def test_results_that_cannot_be_read_name_the_field(entry: dict[str, Any], field: str) -> None:
    with pytest.raises(RowError) as raised:
        read(entry)
    assert raised.value.field == field


def test_what_tau2_says_beside_the_messages_and_the_user_does() -> None:
    call = {"id": "u", "name": "reboot", "arguments": {}, "requestor": "user"}
    own = [
        {"role": "assistant", "content": "Hello!", "turn_idx": 0},
        {"role": "user", "content": None, "tool_calls": [call]},
        {"role": "tool", "id": "u", "content": "on", "requestor": "user", "error": False},
    ]
    run = read(SIMULATION | {"messages": [*own, *SIMULATION["messages"]]})
    assert (run.trajectory_id, run.case_id, run.trial) == ("5f0c", "7", 0)
    assert (run.tested_model, run.setting) == ("demo-1", "parcels")
    assert (run.termination, run.infrastructure_error) == ("user_stop", "")
    assert (run.outcome, run.usage) == (Outcome(1.0), {"agent_cost": 0.5})
    assert run.remarks == {"parallel calls": 1, "user-side calls": 1}
    hello, booted, *_ = run.steps
    assert hello.extra == {"turn_idx": 0}
    assert (booted.source, booted.calls[0].name) == ("user", "reboot")
    assert (booted.observations[0].content, booted.observations[0].is_error) == ("on", False)
    assert run.extra["reward_info"] == {"db_check": {"db_match": True}}
    assert (run.extra["seed"], run.extra["duration"]) == (42, 20.5)
    assert run.task == {"id": "7", "purpose": "Move a parcel."}


def test_infrastructure_errors_of_tau2_are_named_and_one_alone_says_nothing_of_the_agent() -> None:
    broken = {"termination_reason": "infrastructure_error", "messages": [], "reward_info": None}
    run = read(SIMULATION | broken)
    assert (run.infrastructure_error, run.outcome) == ("infrastructure_error", None)
    many = read(SIMULATION | {"termination_reason": "too_many_errors", "policy": "Own."}, {})
    assert (many.infrastructure_error, many.tested_model, many.setting) == ("", "", "")
    assert (many.tools, many.system_prompt) == (None, "Own.")


def test_results_of_tau_bench_may_be_lines(tmp_path: Path) -> None:
    runs = [TAU | {"task_id": task, "trial": trial} for task in range(2) for trial in range(2)]
    path = tmp_path / "results.json"
    path.write_text("\n".join(map(json.dumps, runs)))
    assert detect(path) == "tau-bench"
    read_runs = [entry.content for entry in read_log(path)]
    ids = [run.trajectory_id for run in read_runs if isinstance(run, Trajectory)]
    assert ids == ["0-0", "0-1", "1-0", "1-1"]


def test_results_of_tau2_are_one_object_in_any_order(tmp_path: Path) -> None:
    runs = [SIMULATION | {"id": "s1"}, SIMULATION | {"id": "s2", "task_id": None}]
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"simulations": [*runs, SIMULATION | {"id": "s3"}], **AROUND}))
    assert detect(path) == "tau2"
    first, bad, last = (entry.content for entry in read_log(path))
    assert isinstance(bad, RowError)
    for run, trajectory_id in ((first, "s1"), (last, "s3")):
        assert isinstance(run, Trajectory)
        assert (run.trajectory_id, run.tested_model) == (trajectory_id, "demo-1")
