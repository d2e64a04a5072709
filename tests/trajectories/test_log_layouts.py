"""Logs in any format and layout: what is detected, and what is said of what is none."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from apbjudge.records.trajectories import Trajectory, trajectory_row
from apbjudge.trajectories.reading import detect, read_log
from apbjudge.trajectories.writing import to_atif, to_messages
from tests.support.runs import run_of, write_runs
from tests.trajectories.planbench.world import LibraryRun, write_run

RUN = run_of("a")
TAU = {"task_id": 1, "trial": 0, "reward": 1.0, "traj": to_messages(RUN)["messages"]}
SAMPLE = {
    "id": 1,
    "epoch": 1,
    "target": "x",
    "scores": {},
    "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}],
}
INSPECT = {"version": 2, "eval": {"model": "m", "task": "t"}, "samples": [SAMPLE]}
ROWS: dict[str, dict[str, Any]] = {
    "trajectories": trajectory_row(RUN),
    "messages": to_messages(RUN),
    "atif": to_atif(RUN),
    "tau-bench": TAU,
}


def contents(path: Path, log_format: str = "auto") -> list[Any]:
    return [entry.content for entry in read_log(path, log_format)]


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("layout", ["lines", "array", "indented array", "one object", "folder"])
def test_formats_are_detected_by_content_in_every_layout(
    name: str, layout: str, tmp_path: Path
) -> None:
    row, path = ROWS[name], tmp_path / "log"
    if layout == "lines":
        path.write_text(f"{json.dumps(row)}\n")
    elif layout == "folder":
        path.mkdir()
        (path / "run.json").write_text(json.dumps(row, indent=2))
    elif layout == "one object":
        path.write_text(json.dumps(row, indent=2))
    else:
        path.write_text(json.dumps([row], indent=2 if "indented" in layout else None))
    assert detect(path) == name
    (run,) = contents(path)
    assert isinstance(run, Trajectory)
    assert [step.source for step in run.steps] == ["user", "agent", "agent"]
    assert run.place.format == name


def test_inspect_and_planbench_are_detected(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    log.write_text(json.dumps(INSPECT, indent=1))
    assert detect(log) == "inspect"
    assert [run.tested_model for run in contents(log)] == ["m"]
    archive = tmp_path / "log.eval"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("header.json", json.dumps({k: INSPECT[k] for k in ("version", "eval")}))
        made.writestr("samples/1_epoch_1.json", json.dumps(SAMPLE))
    assert detect(archive) == "inspect"
    assert len(contents(archive)) == 1
    folder = write_run(tmp_path / "run", [LibraryRun("q1").answer("3B")])
    assert detect(folder) == "planbench-xl"
    assert [run.case_id for run in contents(folder)] == ["q1"]
    assert detect(folder / "result.jsonl") == "planbench-xl"


def test_bad_runs_cost_no_others_and_ids_occur_once(tmp_path: Path) -> None:
    rows = [json.dumps(trajectory_row(run_of(case))) for case in "abcb"]
    cut = [rows[0], rows[1][:50], rows[2], rows[0], '{"format": "apbjudge-trajectory@1"}', rows[3]]
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(cut) + "\n")
    found = list(read_log(log))
    kinds = [isinstance(entry.content, Trajectory) for entry in found]
    assert kinds == [True, False, True, False, False, True]
    assert [entry.line for entry in found] == [1, 2, 3, 4, 5, 6]
    assert "an id that no run before it has" in str(found[3].content)
    assert str(found[4].content) == "field trajectory_id: expected a value, got nothing"
    again = [entry[:3] for entry in read_log(log)]
    assert [entry[:3] for entry in found] == again  # line, offset, digest
    assert found[-1].offset == log.stat().st_size - 1


def test_one_id_in_two_settings_or_of_two_models_is_two_runs(tmp_path: Path) -> None:
    runs = [
        run_of("a"),
        run_of("a", setting="block"),
        run_of("a", tested_model="birch"),
    ]
    log = write_runs(tmp_path / "log.jsonl", *runs)
    assert all(isinstance(content, Trajectory) for content in contents(log))
