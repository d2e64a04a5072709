"""``apbjudge convert`` from the command line: what it says, and its exit codes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.runs import run_of, write_runs

from .conftest import Command

TOOL = {"name": "find", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}


@pytest.fixture(autouse=True)
def log(apbjudge: Command) -> Path:
    """Two trajectories, in the folder in which the commands run."""
    Path("tools.json").write_text(json.dumps([TOOL]), encoding="utf-8")
    runs = (run_of(case, tested_model="", remarks={"calls": 1}) for case in ("t0", "t1"))
    return write_runs(Path("log.jsonl"), *runs)


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(name).read_text(encoding="utf-8").splitlines()]


def test_steps_of_a_log_are_graded(apbjudge: Command) -> None:
    options = ("--tools", "tools.json", "--tested-model", "alder")
    done = apbjudge("convert", "log.jsonl", "steps.jsonl", "--to", "cases", *options)
    assert (done.code, done.out) == (0, "")
    assert done.err.splitlines() == [
        "format: trajectories",
        "2 calls: see the log",
        "2 outcome: not in the rows",
        "written: steps.jsonl (4 rows from 2 trajectories)",
        "next: apbjudge grade steps.jsonl --protocol step-wise",
    ]
    graded = apbjudge(*"grade steps.jsonl --protocol step-wise --out run".split())
    assert graded.code == 0
    names = ("case_id", "item_id", "tested_model", "is_correct")
    assert [tuple(row[name] for name in names) for row in rows("run/judgements.jsonl")] == [
        (f"t{n}", f"t{n}-0-step{step}", "alder", step == 1) for n in (0, 1) for step in (0, 1)
    ]


def test_unusable_input_ends_with_code_2_and_one_line(apbjudge: Command) -> None:
    for line, text in {
        "o.jsonl": "--to: expected one of messages, atif, jsonl, cases, answers, got nothing",
        "tools.json --to jsonl": "OUT: 'tools.json' exists; choose another name",
        "log.jsonl --to jsonl": "OUT: expected another file than the log",
        "o.jsonl --to cases --tools log.jsonl": "log.jsonl: expected a JSON list of",
    }.items():
        done = apbjudge("convert", "log.jsonl", *line.split())
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert text in done.err
    assert not Path("o.jsonl").exists()


def test_a_log_that_is_not_read_whole_is_said_warned_of_and_refused(apbjudge: Command) -> None:
    words = [f"word{n}" for n in range(900)]
    said = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": " ".join(words)}]

    def log(n_unread: int) -> str:
        memo = " ".join(reversed(words[:n_unread]))
        row = {"id": "a", "messages": said, "reward": 1, "memo": memo}
        Path("chat.jsonl").write_text(json.dumps(row), encoding="utf-8")
        return "chat.jsonl"

    def convert(n_unread: int, to: str, *options: str) -> tuple[int, str]:
        done = apbjudge("convert", log(n_unread), "o.jsonl", "--to", to, "--overwrite", *options)
        return done.code, next((line for line in done.err.splitlines() if "unread" in line), "")

    assert convert(0, "cases") == (0, "")
    assert convert(9, "cases") == (0, "unread content: 53 of 7,145 characters: memo 53")
    warning = "warning: unread content: 346 of 7,438 characters (4.7%): memo 346"
    assert convert(51, "answers", "--accept-loss", "5%") == (0, warning)
    refused = "chat.jsonl: expected at most 2% of its content unread, got unread content"
    assert refused in convert(51, "cases")[1]
    assert "at most 10% of its content unread" in convert(400, "messages")[1]

    done = apbjudge("grade", log(51), "--out", "run")
    assert (done.code, f"chat.jsonl: {warning}" in done.err) == (0, True)
    manifest = json.loads(Path("run/manifest.json").read_text(encoding="utf-8"))
    assert manifest["unread_content"]["text"] == warning
    assert warning in apbjudge("report", "run", "--format", "json").out
    judge = ("--judge", "openai/m", "--api-base", "http://127.0.0.1:9/v1")
    done = apbjudge("grade", log(51), "--protocol", "step-wise", *judge, "--out", "asked")
    assert (done.code, refused in done.err) == (2, True)


def test_several_files_a_pattern_and_standard_input(
    apbjudge: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("more").mkdir()
    for number in range(3):
        run = json.loads(Path("log.jsonl").read_text().splitlines()[0])
        run |= {"trajectory_id": f"m{number}", "case_id": f"m{number}"}
        Path("more", f"{number}.jsonl").write_text(json.dumps(run) + "\n")
    several = apbjudge("convert", "more/0.jsonl", "log.jsonl", "a.jsonl", "--to", "jsonl")
    assert (several.code, "3 rows from 3 trajectories" in several.err) == (0, True)
    assert apbjudge("convert", "more/*.jsonl", "b.jsonl", "--to", "jsonl").code == 0
    assert [row["case_id"] for row in rows("b.jsonl")] == ["m0", "m1", "m2"]
    with Path("log.jsonl").open() as piped_in:
        monkeypatch.setattr(sys, "stdin", piped_in)
        piped = apbjudge("convert", "-", "c.jsonl", "--to", "jsonl")
    assert (piped.code, len(rows("c.jsonl"))) == (0, 2)
    graded = apbjudge("grade", "more/0.jsonl", "more/1.jsonl")
    assert (graded.code, "runs/1-outcome-code-" in graded.out) == (0, True)
    shown = apbjudge("prompt", "log.jsonl", "--id", "t1-0-step0")
    assert (shown.code, "Where is it?" in shown.out) == (0, True)
    none = apbjudge("convert", "more/0.jsonl", "gone.jsonl", "d.jsonl", "--to", "jsonl")
    assert (none.code, none.err) == (2, "apbjudge: ./gone.jsonl: no such file or folder\n")


def test_a_file_that_is_neither_predictions_nor_a_log_is_said_to_be_neither(
    apbjudge: Command,
) -> None:
    Path("rooms.jsonl").write_text('{"room": 1, "guests": []}\n{"room": 2, "guests": []}\n')
    for command in (("grade", "rooms.jsonl"), ("grade", "rooms.jsonl", "--protocol", "step-wise")):
        done = apbjudge(*command)
        assert (done.code, done.out) == (2, "")
        names = "rows with id, query and model_response"
        both = f"expected predictions ({names}) or trajectories of agents"
        assert done.err.startswith(f"apbjudge: rooms.jsonl: {both}, got fields 'room, guests': ")
        assert "--from NAME reads it as one of adk, agentdojo, atif, " in done.err
    done = apbjudge("convert", "rooms.jsonl", "x.jsonl", "--to", "jsonl", "--from", "nothing")
    assert "--from: expected one of adk, agentdojo, atif, " in done.err
