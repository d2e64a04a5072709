"""``apbjudge calibrate``: what it prints, its exit codes, and what it says of unusable input."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from .conftest import EXAMPLES, Command, example

GOLDEN = Path(__file__).parents[1] / "golden"


def graded(apbjudge: Command, name: str) -> Path:
    run = Path("runs") / name
    assert apbjudge("grade", example(name), "--out", run).code == 0
    return run


def labels(name: str) -> Path:
    return EXAMPLES / "labels" / f"{name}.jsonl"


@pytest.mark.parametrize("name", ["holistic", "tool_broken"])
def test_the_static_judge_on_the_examples(apbjudge: Command, name: str) -> None:
    """UPDATE_GOLDEN=1 writes the texts anew; read the difference before it is committed."""
    run = graded(apbjudge, name)
    result = apbjudge("calibrate", run, labels(name), "--by", "tested_model", "--design", "random")
    assert (result.code, result.err) == (0, "")
    path = GOLDEN / f"calibration_{name}.txt"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.write_text(result.out, encoding="utf-8")
    assert result.out == path.read_text(encoding="utf-8")


def test_unusable_input_ends_with_2_and_one_line(apbjudge: Command) -> None:
    run = graded(apbjudge, "holistic")
    for arguments, text in {
        ("nowhere", labels("holistic")): "nowhere: can't be read",
        (run,): "calibrate: expected judgements and then labels, got one file",
        (run, labels("holistic"), "--level", "nan"): "--level: expected a number above 0 and",
    }.items():
        result = apbjudge("calibrate", *arguments)
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
        assert text in result.err


def test_names_that_would_move_the_cursor_are_shown_as_they_are(apbjudge: Command) -> None:
    run = graded(apbjudge, "holistic")
    rows = [json.loads(line) for line in (run / "judgements.jsonl").read_bytes().splitlines()]
    humans = [json.loads(line) for line in labels("holistic").read_bytes().splitlines()]
    for row in [*rows, *humans]:
        row["tested_model"] += "\x1b[2J"
    for row in humans:
        row["rater"] = "kim\x1b[31m"
    Path("j.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    twice = [*humans, *({**row, "rater": "lee\x07"} for row in humans)]
    Path("l.jsonl").write_text("\n".join(map(json.dumps, twice)), encoding="utf-8")
    result = apbjudge("calibrate", "j.jsonl", "l.jsonl", "--by", "tested_model")
    assert result.code == 0
    assert not any(mark in result.out for mark in "\x1b\x07")
