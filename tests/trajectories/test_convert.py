"""Logs in other formats: nothing is lost, dropped silently or overwritten."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

import apbjudge
from apbjudge.errors import InputError, OptionError
from apbjudge.records.trajectories import (
    LogPlace,
    Outcome,
    ToolCall,
    ToolResult,
    Trajectory,
    TrajectoryStep,
    trajectory_of,
    trajectory_row,
)
from apbjudge.trajectories.convert import Target, convert
from apbjudge.trajectories.steps import step_rows
from apbjudge.trajectories.writing import to_atif, to_messages
from tests.support.runs import run_of, write_runs

TARGETS: tuple[Target, ...] = ("messages", "atif", "jsonl", "cases")
RUN = Trajectory(
    trajectory_id="t1/0",
    case_id="t1",
    tested_model="alder",
    query="Where is it?",
    steps=(
        TrajectoryStep("user", text="Where is it?"),
        TrajectoryStep(
            "agent",
            "call",
            thought="Look.",
            calls=(ToolCall("find", {"order": 7}, "c1"),),
            observations=(ToolResult("here", "c1", is_error=False),),
        ),
        TrajectoryStep("user", "call", calls=(ToolCall("toggle", {}, "u1"),)),
        TrajectoryStep("agent", text="It is here."),
    ),
    outcome=Outcome(reward=1.0),
    remarks={"user-side calls": 1},
    place=LogPlace("trajectories"),
)
SILENT = replace(RUN, trajectory_id="t2/0", case_id="t2", steps=RUN.steps[:1], outcome=None)


def log_of(path: Path, *runs: Trajectory | str) -> Path:
    """Writes trajectories in our own format, and other lines as they are."""
    lines = (
        run.encode() if isinstance(run, str) else orjson.dumps(trajectory_row(run)) for run in runs
    )
    path.write_bytes(b"\n".join(lines))
    return path


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def deep() -> str:
    """A trajectory that can be read but not written."""
    place = '{"order": 7}'.replace("7", "[" * 300 + "]" * 300)
    text = orjson.dumps(trajectory_row(replace(RUN, trajectory_id="deep"))).decode()
    return text.replace('{"order":7}', place)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return log_of(tmp_path / "log.jsonl", RUN, SILENT)


def test_a_run_is_a_row_in_the_format_asked_for(log: Path, tmp_path: Path) -> None:
    out = {to: tmp_path / f"{to}.jsonl" for to in TARGETS}
    done = {to: convert(log, out[to], to=to) for to in TARGETS}
    assert [done[to].rows for to in TARGETS] == [2, 2, 2, 2]
    read = [trajectory_of(values) for values in lines(out["jsonl"])]
    assert [replace(run, place=RUN.place) for run in read] == [RUN, SILENT]
    assert lines(out["messages"]) == [to_messages(run) for run in read]
    assert lines(out["atif"]) == [to_atif(run) for run in read]
    assert lines(out["cases"]) == list(step_rows(read[0]))


def test_what_a_target_does_not_hold_is_counted(log: Path, tmp_path: Path) -> None:
    done = {to: convert(log, tmp_path / f"{to}.jsonl", to=to) for to in TARGETS}
    apart = {"outcome": 1, "user-side calls": 1, "trajectories with too few steps of the agent": 1}
    assert (done["jsonl"].left_out, done["cases"].left_out) == ({}, apart)
    assert done["messages"].left_out["reasoning"] == done["atif"].left_out["outcome"] == 1
    own = done["jsonl"]
    assert (own.format, own.trajectories, own.problems) == ("trajectories", 2, ())
    assert own.remarks == {"user-side calls": 2}


@pytest.mark.parametrize("to", TARGETS)
def test_a_run_that_cannot_be_read_or_written_costs_no_other(to: Target, tmp_path: Path) -> None:
    bad = '{"format": "apbjudge-trajectory@1", "trajectory_id": "x", "steps": 5}'
    log = log_of(tmp_path / "log.jsonl", RUN, bad, "{", deep(), replace(RUN, trajectory_id="z"))
    done = convert(log, tmp_path / "out.jsonl", to=to, from_="trajectories")
    assert [text.split(": ")[0] for text in done.problems] == [f"{log}:{n}" for n in (2, 3, 4)]
    assert all(": field " in text and ": expected " in text for text in done.problems)
    assert done.trajectories == 2
    assert len(lines(tmp_path / "out.jsonl")) == done.rows == (4 if to == "cases" else 2)


def test_a_log_without_a_run_writes_nothing(tmp_path: Path) -> None:
    log = log_of(tmp_path / "log.jsonl", '{"steps": 1}', "[")
    for out in (tmp_path / "out.jsonl", tmp_path / "folder"):
        with pytest.raises(InputError, match=r"log\.jsonl: expected "):
            convert(log, out, to="atif", from_="trajectories")
    assert sorted(tmp_path.iterdir()) == [log]


# Output -------------------------------------------------------------------------------------------


def test_a_file_that_is_there_is_replaced_only_when_asked(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_bytes(b"mine\n")
    with pytest.raises(OptionError, match="exists; choose another name, or --overwrite"):
        convert(log, out, to="cases")
    log_of(tmp_path / "bad.jsonl", "{")
    with pytest.raises(InputError):
        convert(tmp_path / "bad.jsonl", out, to="jsonl", from_="trajectories", overwrite=True)
    assert out.read_bytes() == b"mine\n"
    convert(log, out, to="cases", overwrite=True)
    assert len(lines(out)) == 2
    out.write_bytes(b"")
    assert convert(log, out, to="cases").rows == 2


def test_a_log_is_never_replaced_by_what_is_made_of_it(log: Path, tmp_path: Path) -> None:
    before = log.read_bytes()
    other = tmp_path / "linked.jsonl"
    other.hardlink_to(log)
    for out in (log, other):
        with pytest.raises(OptionError, match="OUT: expected another file than the log"):
            convert(log, out, to="jsonl", overwrite=True)
    assert log.read_bytes() == before


def test_atif_may_be_a_folder_with_a_file_for_each_run(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "runs"
    done = convert(log, out, to="atif")
    assert (done.is_folder, done.rows) == (True, 2)
    names = ["000001-t1-0.json", "000002-t2-0.json"]
    assert sorted(path.name for path in out.iterdir()) == names
    assert json.loads((out / names[0]).read_bytes())["trajectory_id"] == "t1/0"
    with pytest.raises(OptionError, match="OUT: expected a new or an empty folder, got "):
        convert(log, out, to="atif", overwrite=True)
    with pytest.raises(OptionError, match="OUT: expected a file, got the folder"):
        convert(log, out, to="messages", overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.jsonl", "runs"]


def test_ids_that_make_the_same_name_keep_their_files(tmp_path: Path) -> None:
    ids = ["a/b", "a b", "../../a", "é" * 300, "..."]
    log = log_of(tmp_path / "log.jsonl", *(replace(RUN, trajectory_id=name) for name in ids))
    convert(log, tmp_path / "runs", to="atif")
    files = sorted((tmp_path / "runs").iterdir())
    assert [json.loads(file.read_bytes())["trajectory_id"] for file in files] == ids


def test_what_cannot_be_written_is_an_input_error(log: Path, tmp_path: Path) -> None:
    for out in (tmp_path / "no" / "out.jsonl", tmp_path / "no" / "runs"):
        with pytest.raises(InputError, match=f"{out}: can't be written: No such file"):
            convert(log, out, to="atif")


# Options ------------------------------------------------------------------------------------------


def test_tools_and_the_model_fill_what_the_log_does_not_state(tmp_path: Path) -> None:
    own = replace(RUN, trajectory_id="own", tools=({"name": "own"},))
    log = log_of(tmp_path / "log.jsonl", replace(RUN, tested_model=""), own)
    tools = tmp_path / "tools.json"
    tools.write_text('[{"name": "find"}]', encoding="utf-8")
    convert(log, tmp_path / "out.jsonl", to="cases", tools=tools, tested_model="birch")
    found = [
        (r["tested_model"], json.loads(r["tools_json"])) for r in lines(tmp_path / "out.jsonl")
    ]
    assert found[::2] == [("birch", [{"name": "find"}]), ("alder", [{"name": "own"}])]


def test_steps_and_places_reach_the_rows(tmp_path: Path) -> None:
    says = tuple(TrajectoryStep("agent", text=str(i)) for i in range(8))
    log = log_of(tmp_path / "log.jsonl", replace(RUN, steps=says))
    convert(log, tmp_path / "out.jsonl", to="cases", steps=2, at="quartiles")
    ids = [values["id"] for values in lines(tmp_path / "out.jsonl")]
    assert ids == ["t1/0-step2-k2", "t1/0-step4-k2", "t1/0-step6-k2"]


def test_options_without_effect_are_refused(log: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"tools": "t.json", "steps": 2, "at": "quartiles"}
    for name, value in options.items():
        message = f"--{name}: expected --to cases with it, got --to atif"
        with pytest.raises(OptionError, match=message):
            convert(log, tmp_path / "out.jsonl", to="atif", **{name: value})


@pytest.mark.parametrize("text", ["[", '{"name": "find"}', '[{"title": "x"}]'])
def test_a_file_that_is_no_list_of_tools_is_refused(text: str, log: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"tools\.json: expected a JSON list of tools, got "):
        convert(log, tmp_path / "out.jsonl", to="cases", tools=tools)


def test_last_messages_are_rows_to_be_labelled(tmp_path: Path) -> None:
    silent = run_of("b", steps=run_of("b").steps[:-1])
    tools = ({"name": "find"},)
    talks = run_of("a", final_answer="It can't be found.", tools=tools, system_prompt="Be brief.")
    log = write_runs(tmp_path / "log.jsonl", talks, silent)
    done = convert(log, tmp_path / "answers.jsonl", to="answers")
    (line,) = (tmp_path / "answers.jsonl").read_text().splitlines()
    row = json.loads(line)
    assert (row["id"], row["model_response"]) == ("a-0", "It can't be found.")
    assert (json.loads(row["tools_json"]), row["system_prompt"]) == ([*tools], "Be brief.")
    assert done.left_out == {"trajectories without a last message": 1}
    run = apbjudge.grade(tmp_path / "answers.jsonl", rubric="surrender@1", protocol="holistic")
    assert run.summary.totals.rows == 1


def test_scores_and_the_entries_of_steps_are_carried_on(tmp_path: Path) -> None:
    said = [("user", "q"), ("assistant", "x"), ("user", "and?"), ("assistant", "y")]
    messages = [{"role": role, "content": text} for role, text in said]
    scores = {"f1": 0.5, "tone": "dry"}
    chat = json.dumps({"id": "a", "model": "m", "scores": scores, "messages": messages})
    log = log_of(tmp_path / "log.jsonl", chat)
    rows: dict[Target, list[dict[str, Any]]] = {}
    for to in TARGETS:
        done = convert(log, tmp_path / to, to=to, success="f1>=0.5")
        rows[to] = lines(tmp_path / to) if to != "atif" else []
    assert [of["sources"] for of in rows["cases"]] == [[1], [3]]
    assert done.left_out == {"outcome": 1, "scores": 2}
    own = trajectory_of(rows["jsonl"][0])
    assert own.scores == scores
    assert own.outcome == Outcome(success=True)
    assert [step.sources for step in own.steps] == [(0,), (1,), (2,), (3,)]
    again = convert(tmp_path / "messages", tmp_path / "messages2", to="jsonl")
    assert trajectory_of(lines(again.out)[0]).scores == own.scores
    (folder,) = (tmp_path / "atif").iterdir()
    convert(folder, tmp_path / "atif2", to="jsonl")
    assert trajectory_of(lines(tmp_path / "atif2")[0]) == replace(
        own, place=LogPlace("atif", "1.8", folder.name)
    )
