"""Published judgement rows of the benchmark's authors, read as runs."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

import apbjudge
from apbjudge.audits.material import known_of
from apbjudge.errors import InputError, OptionError
from apbjudge.judge.published import only_run, read_runs
from apbjudge.labelling.queue import JudgeVerdicts
from apbjudge.records import Item
from tests.support.judging import write_rows

EXAMPLES = Path(__file__).parents[2] / "examples"
FLAGS = {f"E{number}": 0 for number in range(1, 7)}
RIGHT = {"is_correct": True, "grade": 1.0, "error_list": FLAGS, "reasoning": "ok"}
WRONG = {"is_correct": False, "grade": 0.8, "error_list": {**FLAGS, "E5": 1}, "reasoning": "no"}
UNREADABLE: dict[str, tuple[Any, str]] = {
    "empty": ({}, "missing verdict: field judgement.is_correct is absent"),
    "word": ({**RIGHT, "is_correct": "perhaps"}, "judgement.is_correct: expected true, false, yes"),
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


KEYS = (
    "E1_GOAL_UNDERSTANDING E2_TASK_COMPLETENESS E3_CONSTRAINT_VIOLATION E4_LOGICAL_DEFECT "
    "E5_TOOL_USE_ERROR E6_HALLUCINATION_ERROR"
).split()


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize(
    ("word", "is_correct"),
    [("YES", True), ("true", True), ("NO", False), (" False ", False), (False, False)],
)
def test_words_and_the_keys_of_the_papers_prompts_are_read(
    tmp_path: Path, word: object, *, is_correct: bool, nested: bool
) -> None:
    flags = {key: int(key.startswith("E5") and not is_correct) for key in KEYS}
    stated = {"is_correct": word, "score": 1 if is_correct else 0.8, "reasoning": "ok"}
    stated |= {"error_list": flags} if nested else flags
    (run,) = read_runs(write_rows(tmp_path / "judged.jsonl", [row("a", stated)]))
    read = run.row_at(int(run.table.position[0]))
    assert (read["kind"], read["is_correct"], read["grade"]) == (
        "verdict",
        is_correct,
        stated["score"],
    )
    assert read["errors"] == {code: code == "E5" and not is_correct for code in FLAGS}
    assert read["inconsistent"] is False


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


def by_draw(item: Item) -> dict[str, Any]:
    """A judge whose verdicts are drawn by the item's own text."""
    rng = Random(f"{item.item_id} {item.tested_model}")
    flags = {"E5": rng.random() < 0.3, "E2": rng.random() < 0.2}
    if item.condition.unsolvable_type:
        return {"is_correct": rng.random() < 0.5}
    grade = 0.4 if flags["E2"] else 0.8 if flags["E5"] else 1.0
    return {"is_correct": not any(flags.values()), "grade": grade, "errors": flags}


def exported(path: Path, run: apbjudge.Run) -> list[dict[str, Any]]:
    """A run in the layout of the authors' runner."""
    source = [json.loads(line) for line in path.read_bytes().splitlines()]
    rows: list[dict[str, Any]] = []
    for judged in run.judgements:
        stated: dict[str, Any] = {"is_correct": judged.is_correct, "reasoning": "r"}
        if judged.errors is not None:
            stated |= {"grade": judged.grade, "error_list": dict.fromkeys(FLAGS, 0)}
            stated["error_list"] |= {code: int(of) for code, of in judged.errors.items()}
        own = {"judge_model": judged.judge, "judgement": stated}
        rows.append(source[judged.line - 1] | own)
    return rows


@pytest.mark.parametrize("name", "holistic step_wise tool_extraneous unsolvable efficiency".split())
def test_a_run_in_the_layout_of_the_authors_runner_gives_the_same_tables(
    tmp_path: Path, name: str
) -> None:
    path = EXAMPLES / f"{name}.jsonl"
    run = apbjudge.grade(path, judge=by_draw, out=tmp_path / "run")
    rows = exported(path, run)
    read = apbjudge.report(write_rows(tmp_path / "judged.jsonl", rows))
    tables = {table.key: table.rows for table in apbjudge.report(tmp_path / "run").tables}
    assert {table.key: table.rows for table in read.tables} == tables
    assert tables
    spoiled: list[object] = [None, {}, {"is_correct": "perhaps"}, "yes"]
    for of, judgement in zip(rows, spoiled, strict=False):
        of["judgement"] = judgement
    (again,) = read_runs(write_rows(tmp_path / "spoiled.jsonl", rows))
    assert (len(again.table), again.table.totals.unscored) == (len(rows), {"unparsable": 4})


def test_grade_judges_anew_only_when_asked_to(file: Path) -> None:
    with pytest.raises(OptionError, match="apbjudge report shows them; --regrade"):
        apbjudge.grade(file)
    alone = write_rows(file.with_name("alone.jsonl"), [row("right", RIGHT)])
    assert len([*apbjudge.grade(alone, regrade=True).judgements]) == 1


def test_grades_on_another_scale_are_refused(tmp_path: Path) -> None:
    rows = [row(str(n), {**WRONG, "grade": 1 + n % 5}) for n in range(20)]
    with pytest.raises(InputError, match="16 of the 20 values by careful are off this scale"):
        read_runs(write_rows(tmp_path / "stars.jsonl", rows))
