"""Run folders and bare results as trajectories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from apbjudge.errors import InputError, RowError
from apbjudge.records.trajectories import LogPlace, Outcome, Trajectory
from apbjudge.trajectories.planbench import PLANBENCH_RESULT, is_folder, read_folder
from apbjudge.trajectories.planbench.folder import setting_of

from .world import PATHS, QUERY, LibraryRun, long_run, write_run


def _read(folder: Path) -> dict[str, Trajectory]:
    runs = [entry.content for entry in read_folder(folder)]
    assert all(isinstance(run, Trajectory) for run in runs), runs
    return {run.case_id: run for run in runs if isinstance(run, Trajectory)}


def test_a_finished_run(tmp_path: Path) -> None:
    run = long_run()
    right = LibraryRun("q3").along(*PATHS["t3"][0]).answer("K-5")
    folder = write_run(tmp_path / "run", [run, right])
    assert is_folder(folder)
    entries = [*read_folder(folder)]
    assert [entry.line for entry in entries] == [1, 2]
    size = (folder / "result.jsonl").stat().st_size
    assert size - 1 <= entries[-1].offset <= size
    runs = _read(folder)
    read = runs["q1"]
    assert (read.trajectory_id, read.tested_model, read.setting) == ("q1", "librarian-1", "")
    assert read.query == QUERY["q1"]["query_text"]
    assert read.system_prompt == "You look things up."
    assert (read.termination, read.final_answer) == ("target_datatype_not_reached", "I don't know")
    assert read.outcome == Outcome(success=False)
    assert (runs["q3"].outcome, runs["q3"].termination) == (Outcome(success=True), "normal")
    assert read.remarks == {"unreadable arguments": 1}
    assert len(read.steps) == len(run.trace)
    assert [step.text for step in read.steps[:2]] == ["response 1", "response 2"]


def test_unfinished_runs(tmp_path: Path) -> None:
    half = LibraryRun("q1").along("member_of_card")
    unfinished = {
        "q1": half.progress(error="Error: connection reset", is_finished=False),
        "q2": LibraryRun("q2").progress(is_finished=False),
    }
    done = LibraryRun("q3").along(*PATHS["t3"][0]).answer("K-5")
    folder = write_run(tmp_path / "run", [done], unfinished=unfinished, results=False)
    assert is_folder(folder)
    runs = _read(folder)
    assert [*runs] == ["q1", "q3"]  # of q2 nothing is known
    broke = "unfinished after 2 turns: 'Error: connection reset'"
    assert runs["q1"].infrastructure_error == broke
    assert len(runs["q1"].steps) == 2
    assert runs["q3"].infrastructure_error == ""


def test_only_a_refused_request_is_a_failed_run(tmp_path: Path) -> None:
    errors = {"q1": "Error code: 400 - {'error': 'context length'}", "q2": "status=429"}
    unfinished = {
        query_id: LibraryRun(query_id).search("card").progress(error=error, is_finished=False)
        for query_id, error in errors.items()
    }
    folder = write_run(tmp_path / "run", unfinished=unfinished, results=False)
    first, second = _read(folder).values()
    assert (first.termination, first.infrastructure_error) == ("runtime_error_http_400", "")
    assert (first.outcome, len(first.steps)) == (Outcome(success=False), 1)
    assert second.infrastructure_error == "unfinished after 1 turns: 'status=429'"


def test_a_run_is_the_same_before_and_after_the_results_are_written(tmp_path: Path) -> None:
    run = long_run()
    (first,) = read_folder(write_run(tmp_path / "a", [run], results=False))
    (second,) = read_folder(write_run(tmp_path / "b", [run]))
    assert first.digest == second.digest
    (other,) = read_folder(write_run(tmp_path / "c", [long_run().babble()]))
    assert other.digest != first.digest


def test_results_win_and_progress_adds(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [LibraryRun("q1").answer("3B")])
    late = LibraryRun("q2").answer("3B").progress()
    (folder / "progress" / "queries" / "q2.json").write_text(json.dumps(late))
    newer = LibraryRun("q1").babble().answer("4").progress()
    (folder / "progress" / "queries" / "q1.json").write_text(json.dumps(newer))
    runs = _read(folder)
    assert [*runs] == ["q1", "q2"]
    assert runs["q1"].final_answer == "3B"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"trace": None}, "field trace: "),
        ({"trace": [{"action": "dance"}] * 2}, "field trace.0.action: expected one of retrieve_"),
        ({"steps": 7}, "field steps: expected 2, the number of entries"),
    ],
)
def test_bad_rows_cost_no_others(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    folder = write_run(tmp_path / "run", [LibraryRun("q3").answer("K-5")])
    (folder / "progress" / "queries" / "q3.json").unlink()
    bad = LibraryRun("q1").babble().babble().result() | changed
    with (folder / "result.jsonl").open("a") as file:
        file.write(json.dumps(bad) + "\n{\n")
    good, odd, torn = [entry.content for entry in read_folder(folder)]
    assert isinstance(good, Trajectory)
    assert str(odd).startswith(message)
    assert isinstance(torn, RowError)


def test_bad_files(tmp_path: Path) -> None:
    assert not is_folder(tmp_path)
    folder = write_run(tmp_path / "run", [LibraryRun("q1").answer("3B")], results=False)
    (folder / "progress" / "queries" / "q1.json").write_text("{")
    (entry,) = read_folder(folder)
    assert isinstance(entry.content, RowError)
    assert entry.content.field == "progress/queries/q1.json"
    (folder / "metadata.json").write_text("[]")
    with pytest.raises(InputError, match=r"field metadata\.json: expected a JSON object"):
        [*read_folder(folder)]


def test_bare_results() -> None:
    row = LibraryRun("q1").answer("3B").result()
    assert PLANBENCH_RESULT.score(row)
    assert not PLANBENCH_RESULT.score({"query_id": "q1", "model_response": ""})
    read = PLANBENCH_RESULT.read(row, LogPlace("planbench-xl", file="result.jsonl", line=4), {})
    assert (read.case_id, read.tested_model, read.place.line) == ("q1", "", 4)


THREE = ["explicit failures", "implicit failures", "semantic misleading"]


@pytest.mark.parametrize(
    ("blocker", "setting"),
    [
        ({"enable_block": False, "fixed_noise_type": "explicit failures"}, "default"),
        ({"noise_mode": "fixed_multi", "fixed_noise_types": THREE}, "mixed"),
        ({"noise_mode": "fixed_multi", "fixed_noise_types": THREE[:2]}, "explicit+implicit"),
        ({"noise_mode": "fixed", "fixed_noise_type": THREE[2]}, "misleading"),
        ({}, "random"),
        ({"fixed_noise_type": THREE[1], "noise_mode": "fixed", "target_remaining_paths": 3},
         "implicit, 3 paths"),
        ({"selection_mode": "", "target_remaining_ratio": 0.2}, "random, keep 0.2"),
        ({"selection_mode": "exact_blocked_paths", "block_n_per_task": 2}, "random, block 2"),
        ({"remaining_path_length_objective": "maximize"}, "random, longest"),
    ],
)  # fmt: skip
def test_settings(blocker: dict[str, Any], setting: str) -> None:
    standard = {
        "enable_block": True,
        "noise_mode": "random",
        "selection_mode": "target_remaining_paths",
        "target_remaining_paths": 1,
        "remaining_path_length_objective": "none",
    }
    config = {"blocker": standard | blocker}
    assert setting_of(config) == setting
    runtime = {"enable_incorrect_final_answer_feedback": True}
    assert setting_of({**config, "runtime": runtime}) == f"{setting}, feedback"
