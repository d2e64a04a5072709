"""The commands: what they print, where they leave files, and with which code they end."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from apbjudge.version import VERSION

from .conftest import EXAMPLES, NAMES, Command, example, process

RUN_FILES = {"judgements.jsonl", "summary.json", "summary.csv", "manifest.json"}
PLANNERS = ["alder-large", "birch-medium", "cress-small"]


def judgements(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "judgements.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_the_version_is_printed(apbjudge: Command, tmp_path: Path) -> None:
    for done in (apbjudge("--version"), process("--version", cwd=tmp_path)):
        assert done.out == f"apbjudge {VERSION}\n"


@pytest.mark.parametrize("name", NAMES)
def test_an_example_file_is_graded_by_the_static_judge(name: str, apbjudge: Command) -> None:
    done = apbjudge("grade", example(name), "--out", "run")
    assert (done.code, done.err) == (0, "")
    assert "upper bound" in done.out
    assert all(planner in done.out for planner in PLANNERS)
    assert {path.name for path in Path("run").iterdir()} >= RUN_FILES
    lines = example(name).read_text(encoding="utf-8").splitlines()
    rows = judgements(Path("run"))
    asked = [json.loads(line) for line in lines]
    assert [(r["item_id"], r["tested_model"]) for r in rows] == [
        (r["id"], r["tested_model"]) for r in asked
    ]
    assert [r["line"] for r in rows] == list(range(1, len(lines) + 1))
    assert {r["kind"] for r in rows} == {"verdict"}
    manifest = json.loads(Path("run/manifest.json").read_bytes())
    assert (manifest["state"], manifest["rows"], manifest["scored"]) == (
        "done",
        len(rows),
        len(rows),
    )


@pytest.mark.parametrize("path", ["no.jsonl", ".", "empty.jsonl", "blank.jsonl"])
def test_an_unusable_file_ends_with_code_2_and_one_clear_line(path: str, apbjudge: Command) -> None:
    Path("empty.jsonl").touch()
    Path("blank.jsonl").write_text("\n \n\t\r\n", encoding="utf-8")
    done = apbjudge("grade", path, "--out", "run")
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert line.startswith(f"apbjudge: {path}: ")


def test_the_same_command_finds_its_default_folder_again(apbjudge: Command) -> None:
    first = apbjudge("grade", example("holistic"))
    (folder,) = Path("runs").iterdir()
    assert folder.name.startswith("holistic-auto-static-")
    assert f"\n{folder}/: judgements.jsonl" in first.out
    before = (folder / "judgements.jsonl").read_bytes()
    second = apbjudge("grade", example("holistic"))
    assert list(Path("runs").iterdir()) == [folder]
    assert second == first
    assert (folder / "judgements.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    "args",
    [("--help",), ("rubric", "show", "apb-holistic"), ("grade", example("holistic"))],
    ids=lambda args: str(args[0]),
)
def test_a_closed_pipe_is_no_reason_to_complain(args: tuple[object, ...], tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = process(*args, cwd=tmp_path, stdout=writing)
    finally:
        os.close(writing)
    assert done.err == ""
    assert done.code in (0, 1)


def test_cases_without_a_prediction_are_named_and_counted_on_demand(
    apbjudge: Command, tmp_path: Path
) -> None:
    joined = EXAMPLES / "joined"
    rows = (joined / "predictions.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    first = json.loads(rows[0])
    own = [row for row in rows if json.loads(row)["tested_model"] == first["tested_model"]]
    predictions = tmp_path / "p.jsonl"
    predictions.write_text("".join(own[1:]), encoding="utf-8")
    command = ("grade", predictions, "--cases", joined / "cases.jsonl", "--out", "run")
    line = f"{first['tested_model']}: no prediction of 1 of {len(own)} cases ({first['id']}): "
    plain = apbjudge(*command)
    assert (plain.code, plain.err) == (0, f"{line}in no figure\n")
    assert f"{len(own) - 1} rows" in plain.out
    counted = apbjudge(*command, "--missing", "count")
    assert (counted.code, counted.err) == (0, f"{line}not correct\n")
    assert "unscored: 1 missing" in counted.out
    assert f"/{len(own)}" in counted.out
    dry = apbjudge(*command, "--missing", "count", "--dry-run")
    assert (dry.code, dry.err) == (0, f"{line}not correct\n")
    assert "1 without a prediction" in dry.out
    failed = apbjudge(*command, "--missing", "count", "--fail-under", "no-provable-fault=1")
    assert failed.code == 3
    wrong = apbjudge("grade", predictions, "--missing", "count")
    assert (wrong.code, wrong.out) == (2, "")
    assert "--missing: expected --cases with it" in wrong.err
