"""Job folders of Harbor: trials with their results and trajectories."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from apbjudge import RowError
from apbjudge.records.trajectories import Outcome, Trajectory
from apbjudge.trajectories.conservation import Conservation
from apbjudge.trajectories.detection import detect
from apbjudge.trajectories.reading import read_log

JOB = Path(__file__).parent / "logs" / "14_harbor_job"
TRIAL = JOB / "parcel-friday__a1b2c3"
RESULT: dict[str, Any] = json.loads((TRIAL / "result.json").read_text())
STEPS: dict[str, Any] = json.loads((TRIAL / "agent" / "trajectory.json").read_text())


def trial(job: Path, name: str, trajectory: Any = STEPS, **changes: Any) -> Path:
    folder = job / name
    (folder / "agent").mkdir(parents=True)
    result = {**RESULT, "trial_name": name, **changes}
    (folder / "result.json").write_text(json.dumps(result))
    if trajectory is not None:
        (folder / "agent" / "trajectory.json").write_text(json.dumps(trajectory))
    return folder


def contents(path: Path) -> list[Trajectory | RowError]:
    return [entry.content for entry in read_log(path)]


def runs(path: Path) -> list[Trajectory]:
    return [of for of in contents(path) if isinstance(of, Trajectory)]


def test_a_trial_has_its_task_reward_model_and_harness() -> None:
    account = Conservation()
    (entry,) = read_log(JOB, conservation=account)
    run = entry.content
    assert isinstance(run, Trajectory)
    assert (run.trajectory_id, run.case_id, run.trial) == (TRIAL.name, "parcel-friday", 1)
    assert (run.tested_model, run.setting, run.outcome) == ("demo-1", "parcel-helper", Outcome(1.0))
    assert run.usage["n_input_tokens"] == 1200
    assert [step.sources for step in run.steps] == [(1,), (2,), (3,), (4,), (5,)]
    assert (account.unread.total(), account.lines) == (0, [])
    assert (entry.place, run.place.format) == (str(TRIAL), "harbor")


def test_a_job_a_trial_and_a_folder_of_jobs_are_the_same_runs(tmp_path: Path) -> None:
    shutil.copytree(JOB, tmp_path / "jobs" / "one")
    trial(tmp_path / "jobs" / "two", "b")
    assert detect(tmp_path / "jobs") == detect(TRIAL) == "harbor"
    assert [run.trajectory_id for run in runs(tmp_path / "jobs")] == [TRIAL.name, "b"]
    (alone,) = runs(TRIAL)
    (of_job,) = runs(JOB)
    assert alone.steps == of_job.steps


def test_trials_are_counted_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("t__c", "t__a", "t__b"):
        trial(tmp_path, name)
    trial(tmp_path, "u__a", task_name="other")
    assert [(run.trajectory_id, run.trial) for run in runs(tmp_path)] == [
        *(("t__a", 1), ("t__b", 2), ("t__c", 3), ("u__a", 1))
    ]


def test_rewards_by_other_names_are_scores_and_no_outcome(tmp_path: Path) -> None:
    trial(tmp_path, "a", verifier_result={"rewards": {"tests": 0.5, "style": 1}})
    (run,) = runs(tmp_path)
    assert (run.outcome, run.scores) == (None, {"tests": 0.5, "style": 1.0})


FAULT = {"exception_type": "AgentTimeoutError", "exception_message": "after 900 s"}
WORDS = "AgentTimeoutError: after 900 s"


@pytest.mark.parametrize(
    ("verified", "trajectory", "broke"),
    [(True, STEPS, ""), (False, STEPS, WORDS), (True, None, WORDS)],
)
def test_a_trial_that_broke(tmp_path: Path, *, verified: bool, trajectory: Any, broke: str) -> None:
    verdict = RESULT["verifier_result"] if verified else None
    trial(tmp_path, "a", trajectory, exception_info=FAULT, verifier_result=verdict)
    (run,) = runs(tmp_path)
    assert (run.termination, run.infrastructure_error) == (WORDS, broke)


def test_a_trial_without_a_trajectory_says_what_is_there(tmp_path: Path) -> None:
    (trial(tmp_path, "a", None) / "agent" / "claude-code.txt").write_text("{}")
    (run,) = runs(tmp_path)
    assert run.infrastructure_error == "agent/trajectory.json is not there, claude-code.txt is"
    assert (run.tested_model, run.steps) == ("demo-1", ())


def test_a_trajectory_goes_on_in_the_files_that_it_names(tmp_path: Path) -> None:
    steps = STEPS["steps"]
    first = {**STEPS, "steps": steps[:3], "continued_trajectory_ref": "../agent/more.json"}
    folder = trial(tmp_path, "a", first)
    more = {**STEPS, "steps": steps[3:], "continued_trajectory_ref": "../agent/more.json"}
    (folder / "agent" / "more.json").write_text(json.dumps(more))  # names itself: read once
    (run,) = runs(tmp_path)
    (whole,) = runs(JOB)
    assert run.steps == whole.steps


@pytest.mark.parametrize("name", ["result.json", "agent/trajectory.json", ""])
def test_a_bad_file_of_a_trial_and_one_without_an_end_cost_no_other(
    tmp_path: Path, name: str
) -> None:
    folder = trial(tmp_path, "a")
    expected = "field result.json: expected a file that can be read, got nothing"
    if name:
        (folder / name).write_text('{"trial_name": "a", "task_name": 7')
        expected = f"field {Path(name).name}: expected a JSON value, got"
    else:
        (folder / "result.json").unlink()
    trial(tmp_path, "b")
    bad, good = contents(tmp_path)
    assert str(bad).startswith(expected)
    assert isinstance(good, Trajectory)
