"""Published judgement rows of the benchmark's authors, read as runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge.audits.material import known_of
from apbjudge.errors import InputError, OptionError
from apbjudge.judge.published import only_run, read_runs
from apbjudge.labelling.queue import JudgeVerdicts
from tests.support.judging import write_rows

FLAGS = {f"E{number}": 0 for number in range(1, 7)}
RIGHT = {"is_correct": True, "grade": 1.0, "error_list": FLAGS, "reasoning": "ok"}
WRONG = {"is_correct": False, "grade": 0.8, "error_list": {**FLAGS, "E5": 1}, "reasoning": "no"}
UNREADABLE: dict[str, tuple[Any, str]] = {
    "empty": ({}, "judgement.is_correct: expected true or false"),
    "word": ({**RIGHT, "is_correct": "NO"}, "judgement.is_correct"),
    "off-scale": ({**RIGHT, "grade": 1.5}, "judgement.grade"),
    "one-flag": ({**RIGHT, "error_list": {"E1": 0}}, "judgement.error_list"),
    "odd-flag": ({**RIGHT, "error_list": {**FLAGS, "E2": 2}}, "judgement.error_list"),
    "text": ("ok", "judgement: expected an object"),
}


def row(item_id: str, judgement: object, judge: str | None = "careful") -> dict[str, Any]:
    return {
        "id": item_id,
        "split": "holistic_planning",
        "query": f"Count the dogs in {item_id}.",
        "tools": [{"name": "detect", "parameters": {"type": "object", "properties": {}}}],
        "tested_model": "m",
        "model_response": '{"plan": "look", "tool_chain": [{"name": "detect"}]}',
        "judge_model": judge,
        "judgement": judgement,
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rows = [row(name, judgement) for name, (judgement, _) in UNREADABLE.items()]
    rows += [row("right", RIGHT), row("wrong", WRONG), row("odd", {**RIGHT, "grade": 0.5})]
    rows += [row("right", WRONG, "other"), row("right", RIGHT, None)]
    return write_rows(tmp_path / "judged.jsonl", rows)


def test_each_judge_is_a_run_and_what_is_no_verdict_counts_as_unscored(file: Path) -> None:
    careful, other = read_runs(file)
    assert (careful.judge, other.judge) == ("careful", "other")
    table = careful.table
    assert (len(table), table.totals.unscored) == (9, {"unparsable": len(UNREADABLE)})
    assert table.totals.inconsistent == 1
    assert careful.problems == (
        f"{file}:11: field judge_model: expected the judge's name, got nothing",
    )
    rows = {of["item_id"]: of for of in map(careful.row_at, table.position.tolist())}
    for name, (_, complaint) in UNREADABLE.items():
        assert complaint in rows[name]["detail"]
    assert rows["wrong"]["errors"] == {code: code == "E5" for code in FLAGS}
    assert rows["wrong"]["protocol"] == "holistic"
    assert other.row_at(int(other.table.position[0]))["line"] == 10


def test_every_command_takes_the_file(file: Path, tmp_path: Path) -> None:
    labels = write_rows(tmp_path / "labels.jsonl", [{"item_id": "right", "is_correct": True}])
    judges = apbjudge.calibrate(file, labels).judges
    assert [(of.judge, of.n_rows) for of in judges] == [("careful", 9), ("other", 1)]
    comparison = apbjudge.compare(file, file)
    assert (comparison.first.judge, comparison.second.judge) == ("careful", "other")
    swapped = apbjudge.compare(file, file, judges="other,careful")
    assert (swapped.first.judge, swapped.n_compared) == ("other", 1)
    assert [judge.name for judge in apbjudge.report(file).judges] == ["careful", "other"]
    with pytest.raises(InputError, match=r"expected one judge, got 2 \(careful, other\)"):
        only_run(file)

    alone = write_rows(tmp_path / "alone.jsonl", [row("right", RIGHT), row("wrong", WRONG)])
    assert JudgeVerdicts(alone, [("wrong", "m")]).view(("wrong", "m"))["grade"] == 0.8
    known = known_of(alone, None)
    assert known.baseline == "judge careful as baseline"
    assert known.truths["wrong", "m"].codes == {"E5"}


def test_grade_judges_anew_only_when_asked_to(file: Path) -> None:
    with pytest.raises(OptionError, match="apbjudge report shows them; --regrade"):
        apbjudge.grade(file)
    alone = write_rows(file.with_name("alone.jsonl"), [row("right", RIGHT)])
    assert len([*apbjudge.grade(alone, regrade=True).judgements]) == 1


def test_grades_on_another_scale_are_refused(tmp_path: Path) -> None:
    rows = [row(str(n), {**WRONG, "grade": 1 + n % 5}) for n in range(20)]
    with pytest.raises(InputError, match="16 of the 20 values by careful are off this scale"):
        read_runs(write_rows(tmp_path / "stars.jsonl", rows))
