"""The commands: what they print, where they leave files, and with which code they end."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from apbjudge.version import VERSION

from .conftest import Command, example, process

RUN_FILES = {"judgements.jsonl", "summary.json", "summary.csv", "manifest.json"}
PLANNERS = ["alder-large", "birch-medium", "cress-small"]


def judgements(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "judgements.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_the_version_is_printed(apbjudge: Command) -> None:
    assert apbjudge("--version").out == f"apbjudge {VERSION}\n"


@pytest.mark.parametrize("name", ["holistic", "efficiency"])
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
    said = [manifest[name] for name in ("state", "rows", "scored")]
    assert said == ["done", len(rows), len(rows)]


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


def test_a_closed_pipe_is_no_reason_to_complain(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = process("grade", example("holistic"), cwd=tmp_path, stdout=writing)
    os.close(writing)
    assert done.err == ""
    assert done.code in (0, 1)
