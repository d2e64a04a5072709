"""Runs on disk: which are one judge's, what each is called, and what of a damaged one is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apbjudge import InputError
from apbjudge.records.run_folder import RunFolder, read_run
from apbjudge.reports.frames import by_judge, frame
from tests.reports.rows import bad_row, unscored, verdict
from tests.support.judging import write_rows

Row = dict[str, Any]


def run(
    folder: Path, rows: list[Row], *, rubric: list[str] | None = None, **judge: Any
) -> RunFolder:
    """A run with a manifest, as far as a report looks at it."""
    folder.mkdir(parents=True)
    write_rows(folder / "judgements.jsonl", rows)
    of = {"model": "j", "seed": 1, "blind": False, **judge}
    manifest = {"settings": of, "identity": {"judge": of, "rubric": rubric}, "note": None}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return read_run(folder)


def names(*runs: RunFolder) -> list[tuple[str, int]]:
    return [(judge.name, len(judge.runs)) for judge in by_judge(runs)]


def test_the_same_item_under_another_protocol_or_model_is_another(tmp_path: Path) -> None:
    runs = [
        run(tmp_path / "a", [verdict("x")]),
        run(tmp_path / "b", [verdict("x", protocol="efficiency")]),
        run(tmp_path / "c", [verdict("x", tested_model="other")]),
    ]
    assert names(*runs) == [("j", 3)]


def test_what_differs_tells_judges_of_the_same_items_apart(tmp_path: Path) -> None:
    runs = [
        run(tmp_path / "a", [verdict("x")]),
        run(tmp_path / "b", [verdict("x")], blind=True),
        run(tmp_path / "c", [verdict("x")], rubric=["own@2", "digest"]),
        run(tmp_path / "d", [verdict("x")], seed=2),
    ]
    assert [name for name, _ in names(*runs)] == ["j [a]", "j (blind)", "j [own@2]", "j [d]"]

    runs = [run(tmp_path / at / "run", [verdict("x")]) for at in "xy"]
    assert [name for name, _ in names(*runs)] == ["j [run] (1)", "j [run] (2)"]


def test_a_folder_without_judgements_is_refused(tmp_path: Path) -> None:
    (tmp_path / "judgements.jsonl").write_text('{"a": 1}\n')
    with pytest.raises(InputError, match=r"expected judgements.*first complaint"):
        read_run(tmp_path)


def test_damaged_rows_are_named_and_the_others_counted(tmp_path: Path) -> None:
    result = run(tmp_path / "a", [verdict("x"), unscored("y"), bad_row(3)])
    with result.path.open("a") as file:
        file.write('{"item_id": 4}\nnothing\n')
    result = read_run(result.path)
    assert result.table.totals.rows == 3
    places = [problem.split(": ")[0].rsplit(":", 1)[-1] for problem in result.problems]
    assert places == ["4", "5"]


def test_an_item_judged_again_in_one_run_counts_once(tmp_path: Path) -> None:
    """The first row, as against labels; one under another protocol is another item."""
    rows = [verdict("x"), verdict("y"), verdict("x", "E5"), verdict("x", protocol="efficiency")]
    again = [bad_row(5), bad_row(5), verdict("y", "E1")]
    result = run(tmp_path / "a", [*rows, *again])
    (judge,) = by_judge([result])
    rows = list(zip(judge.table.item_id.values, judge.table.correct.tolist(), strict=True))
    assert rows == [("x", 1), ("y", 1), ("x", 1), (None, -1), (None, -1)]
    (problem,) = judge.problems
    assert "got 2 more, such as x of m: the first one counts" in problem


def test_a_run_that_is_not_finished_says_so_beside_its_figures(tmp_path: Path) -> None:
    run(tmp_path / "a", [verdict("x")])
    manifest = tmp_path / "a" / "manifest.json"
    for state, is_said in {"running": True, "interrupted": True, "done": False}.items():
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"state": state}))
        (judge,) = by_judge([read_run(tmp_path / "a")])
        assert ("Run a is not finished" in (judge.note or "")) == is_said


def test_nonsense_in_a_row_is_named_and_in_the_manifest_done_without(tmp_path: Path) -> None:
    sure = {"method": "samples", "n": 2, "shares": {}, "entropy": {"is_correct": 7}}
    odd = {"uncertainty": sure, "latency_s": "text", "overrides": [None], "usage": {"calls": -1}}
    rows = [verdict("x"), *(verdict("y") | {name: value} for name, value in odd.items())]
    result = run(tmp_path / "a", rows)
    assert [problem.split(" ")[2] for problem in result.problems] == [
        *("uncertainty.entropy.is_correct:", "latency_s:", "overrides.0:", "usage.calls:")
    ]
    manifest = dict.fromkeys(("identity", "settings", "state", "input"), "text")
    for of in (manifest, {"identity": manifest}):
        (tmp_path / "a" / "manifest.json").write_text(json.dumps(of))
        assert [judge.name for judge in by_judge([read_run(result.path)])] == ["j"]


def test_the_frame_has_a_row_a_judgement_and_what_humans_said(tmp_path: Path) -> None:
    uncertainty = {"method": "samples", "n": 4, "entropy": {"is_correct": 0.81}}
    uncertainty |= {"shares": {"is_correct": 0.25}}
    result = run(
        tmp_path / "a", [verdict("x", "E5", uncertainty=uncertainty), verdict("y"), unscored("z")]
    )
    said = {"item_id": "x", "is_correct": False, "grade": 0.4, "errors": ["E5"]}
    labels = write_rows(tmp_path / "labels.jsonl", [said])
    table = frame(result.path.parent, labels=labels)
    assert list(table["item_id"]) == ["x", "y", "z"]
    x, y, z = (table.iloc[at] for at in range(3))
    assert (x.judge, x.E5, x.E1, x.entropy, x.p_correct) == ("j", True, False, 0.81, 0.25)
    assert (x.human_correct, x.human_grade, x.human_E5) == (False, 0.4, True)
    assert y.isna()[["human_correct", "entropy", "human_E1"]].all()
    assert (z.kind, z.reason) == ("unscored", "timeout")
    assert z.isna()[["is_correct", "grade", "E1"]].all()


def test_a_cost_beyond_all_measure_is_none(tmp_path: Path) -> None:
    dear = [verdict(f"x{at}", plan_cost=cost) for at, cost in enumerate((3.5, 1e300, -1e16))]
    result = run(tmp_path / "a", dear)
    assert np.nan_to_num(result.table.facts["plan_cost"], nan=-1).tolist() == [3.5, -1, -1]


def test_a_file_is_the_first_judge_s_and_rows_of_others_are_named(tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    rows = [
        {**bad_row(1), "judge": "cheap"},  # as a cascade writes a row that never became an item
        verdict("x"),
        *[verdict(name, judge="other\u202e") for name in "xyz"],
        verdict("y"),
    ]
    write_rows(file, rows)
    said = (
        f"{file}: judge: expected rows of one judge, got 3 of others than j, such as "
        r"other\u202e in line 3: they are left out; give each judge a file of its own"
    )
    result = read_run(file)
    assert (result.judge, result.problems) == ("j", (said,))
    assert result.table.item_id.values == [None, "x", "y"]
