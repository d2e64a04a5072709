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


def test_json_says_the_same_and_holds_no_nan(apbjudge: Command) -> None:
    run = graded(apbjudge, "holistic")
    result = apbjudge("calibrate", run, labels("holistic"), "--format", "json")
    assert result.code == 0
    (judge,) = json.loads(result.out, parse_constant=pytest.fail)["judges"]
    agreement = judge["whole"]["measures"]["agreement"]
    assert agreement["n_items"] == 27
    assert agreement["value"] == pytest.approx(23 / 27)
    assert agreement["low"] < agreement["value"] < agreement["high"]


def test_unusable_rows_are_told_and_end_with_1(apbjudge: Command) -> None:
    run = graded(apbjudge, "holistic")
    broken = Path("labels.jsonl")
    broken.write_bytes(b'{"item_id": 3}\n' + labels("holistic").read_bytes())
    result = apbjudge("calibrate", run, broken)
    assert result.code == 1
    assert result.err.startswith(
        "labels.jsonl:1: field item_id: expected a non-empty string, got 3"
    )
    assert len(result.err.splitlines()) == 1
    assert "27 labelled items" in result.out
    assert "rows left out because of problems: 1" in result.out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["nowhere", "LABELS"], "nowhere: can't be read"),
        (["RUN", "nowhere.jsonl"], "nowhere.jsonl: can't be read"),
        (["RUN"], "calibrate: expected judgements and then labels, got one file"),
        (
            ["RUN", "LABELS", "--level", "95"],
            "--level: expected a number above 0 and",
        ),
        (
            ["RUN", "LABELS", "--interval", "wald"],
            "--interval: expected one of jeffreys, jackknife, bca",
        ),
        (["RUN", "LABELS", "--format", "xml"], "--format: expected one of text, json, got 'xml'"),
        (["RUN", "LABELS", "--by", "x"], "--by: expected some of"),
        (["LABELS", "LABELS"], "expected judgements, one a line"),
    ],
)
def test_unusable_input_ends_with_2_and_one_line(
    apbjudge: Command, arguments: list[str], text: str
) -> None:
    run = graded(apbjudge, "holistic")
    places = {"RUN": str(run), "LABELS": str(labels("holistic"))}
    result = apbjudge("calibrate", *(places.get(part, part) for part in arguments))
    assert (result.code, result.out) == (2, "")
    assert text in result.err
    assert len(result.err.splitlines()) == 1


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


def test_marks_from_1_to_5_are_refused_and_not_read_as_grades(apbjudge: Command) -> None:
    run = graded(apbjudge, "holistic")
    rows = [json.loads(line) for line in labels("holistic").read_text().splitlines()]
    marks = Path("marks.csv")
    lines = (f"{r['item_id']},{r['tested_model']},{1 + n % 5}" for n, r in enumerate(rows))
    marks.write_text("\n".join(["item_id,tested_model,grade", *lines]), encoding="utf-8")
    for command in ("calibrate", "report"):
        more = ("--labels",) if command == "report" else ()
        result = apbjudge(command, run, *more, marks)
        assert (result.code, result.out) == (2, "")
        assert "marks.csv:3: field grade: expected a number from 0 to 1, got '2'" in result.err
        assert "21 of the 27 values by human are off this scale" in result.err


SUPPORT = EXAMPLES / "support"
COLUMNS = "verdict=ok,score=stars,rater=who"


def test_judgements_of_another_tool_in_one_command(apbjudge: Command) -> None:
    options = ["--tested-model", "assistant", "--verdict", "passed", "--score", "score"]
    files = SUPPORT / "judged.csv", SUPPORT / "labels.csv"
    more = ["--scale", "1..5", "--label-columns", COLUMNS, "--by", "team"]
    result = apbjudge("calibrate", *files, *options, *more)
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0].startswith("judged against the majority of 2 raters: 36 labelled items in 18 ")
    assert "stars as score (1..5), ok as verdict (yes/no), who as rater." in lines[3]
    for text in ("score MAE", "Spearman", "confusion of score", "by team", "judge minus humans"):
        assert text in result.out
    assert "grade" not in result.out
    assert "nan" not in result.out


def test_preferences_in_one_command(apbjudge: Command) -> None:
    files = SUPPORT / "preferences.csv", SUPPORT / "preference_labels.csv"
    result = apbjudge("calibrate", "--pairwise", *files)
    assert (result.code, result.err) == (0, "")
    for text in ("judge prefers what was shown first", "win rates", "atlas vs birch", "macro F1"):
        assert text in result.out
    assert apbjudge("calibrate", "--pairwise", *files, "--format", "json").code == 0


def test_one_file_with_columns_of_judges_and_raters(apbjudge: Command) -> None:
    path = EXAMPLES / "labels" / "pairwise.csv"
    people = ["--raters", "ann,ben,cleo", "--judges", "careful,hasty"]
    result = apbjudge("calibrate", "--pairwise", path, *people, "--scale", "first,second,tie|draw")
    assert result.code == 1
    assert len(result.err.splitlines()) == 4
    assert ":3: field hasty: expected one of first, second, tie, got 'cannot say'" in result.err
    assert "careful" in result.out


def test_a_missing_scale_ends_with_2_and_one_line(apbjudge: Command) -> None:
    files = SUPPORT / "judged.csv", SUPPORT / "labels.csv"
    result = apbjudge("calibrate", *files, "--score", "score")
    assert (result.code, result.out) == (2, "")
    assert "--scale: expected the scale of score" in result.err
    assert len(result.err.splitlines()) == 1
