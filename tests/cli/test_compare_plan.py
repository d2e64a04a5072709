"""``apbjudge compare`` and ``apbjudge plan-labels``, as a user meets them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.reports.rows import unscored, verdict
from tests.support.judging import write_rows

from .conftest import Command, Outcome

GOLDEN = Path(__file__).parents[1] / "golden"
MODELS = ("alder", "birch")


def rows_of(judge: str, wrong: int) -> Iterator[dict[str, Any]]:
    """48 rows of 24 cases; every so-many-th is wrong, two are unscored."""
    for at in range(24):
        for model in MODELS:
            common = {"tested_model": model, "judge": judge}
            if (at, model) in {(3, "alder"), (9 + wrong, "birch")}:
                yield unscored(f"item-{at:02}", **common)
            elif (at + 2 * MODELS.index(model)) % wrong == 0:
                yield verdict(f"item-{at:02}", "E1 E5", **common)
            else:
                yield verdict(f"item-{at:02}", **common)


def labels() -> Iterator[dict[str, Any]]:
    for at in range(0, 24, 2):
        for model in MODELS:
            right = (at + MODELS.index(model)) % 4 != 0
            yield {
                "item_id": f"item-{at:02}",
                "tested_model": model,
                "is_correct": right,
                "grade": 1.0 if right else 0.4,
                "errors": [] if right else ["E5"],
            }


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    for name, wrong in (("a", 3), ("b", 4)):
        (tmp_path / name).mkdir()
        write_rows(tmp_path / name / "judgements.jsonl", rows_of(f"judge-{name}", wrong))
    write_rows(tmp_path / "labels.jsonl", labels())


def is_golden(text: str, name: str) -> None:
    """UPDATE_GOLDEN=1 writes the texts anew; read the difference before it is committed."""
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def is_one_line(done: Outcome, text: str) -> None:
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("apbjudge: ")
    assert text in done.err


# compare ------------------------------------------------------------------------------------------


def test_two_judges_with_labels(apbjudge: Command) -> None:
    done = apbjudge("compare", "a", "b", "--labels", "labels.jsonl", "--primary", "CR, F1")
    assert (done.code, done.err) == (0, "")
    is_golden(done.out, "compare_judges")


def test_two_tested_models_of_one_run(apbjudge: Command) -> None:
    models = ("--tested-model", "alder", "--tested-model", "birch")
    done = apbjudge("compare", "a", "a/judgements.jsonl", *models, "--level", "0.9")
    assert (done.code, done.err) == (0, "")
    is_golden(done.out, "compare_models")


def test_damaged_rows_are_named_and_make_it_exit_code_1(apbjudge: Command, tmp_path: Path) -> None:
    with (tmp_path / "a" / "judgements.jsonl").open("a") as file:
        file.write('{"item_id": "x\x1b", "kind": 3}\nno json\n')
    for arguments in (("compare", "a", "b"), ("plan-labels", "a")):
        done = apbjudge(*arguments)
        assert done.code == 1
        assert done.err.count("\n") == 2
        assert done.err.startswith("a/judgements.jsonl:49: field ")
        assert done.out


def test_unusable_requests_of_a_comparison_get_one_line(apbjudge: Command) -> None:
    is_one_line(apbjudge("compare", "a", "a"), "RUN_B: expected another run than a; ")
    is_one_line(apbjudge("compare", "a", "none"), "none: can't be read: No such file")
    is_one_line(apbjudge("compare", "a", "labels.jsonl"), "expected judgements, one a line")
    is_one_line(apbjudge("compare", "a", "b", "--format", "xml"), "--format: expected one of text")
    is_one_line(apbjudge("compare", "a", "b", "--primary", "CR,F9"), "got 'F9'")
    is_one_line(apbjudge("compare", "a", "b", "--cluster", "colour"), "--cluster: expected some of")
    is_one_line(apbjudge("compare", "a", "b", "--level", "95"), "--level: expected a number above")
    is_one_line(
        apbjudge("compare", "a", "b", "--adjudicator", "eve", "--labels", "labels.jsonl"),
        "expected labels by eve, got human",
    )


# plan-labels --------------------------------------------------------------------------------------


def test_a_first_plan(apbjudge: Command) -> None:
    done = apbjudge("plan-labels", "a", "--n", "20", "--out", "plan.jsonl")
    assert (done.code, done.err) == (0, "")
    is_golden(done.out, "plan_first")


def test_labels_by_a_plan_correct_a_run(apbjudge: Command, tmp_path: Path) -> None:
    """From the plan through its labels, only begun, to corrected figures."""
    assert apbjudge("plan-labels", "a", "--n", "40", "--out", "plan.jsonl").code == 0
    rows = [json.loads(line) for line in (tmp_path / "plan.jsonl").read_text().splitlines()]
    begun = [row for row in rows if row["order"] and row["order"] <= 30]
    write_rows(
        tmp_path / "done.jsonl",
        [{k: row[k] for k in ("item_id", "tested_model")} | {"is_correct": True} for row in begun],
    )
    done = apbjudge("calibrate", "a", "done.jsonl", "--design", "plan.jsonl", "--format", "json")
    assert (done.code, done.err) == (0, "")
    corrected = next(
        figure
        for figure in json.loads(done.out)["judges"][0]["corrected"]
        if figure["figure"] == "CR" and not figure["field"]
    )
    assert corrected["result"]["design"] == "stratified"
    assert corrected["result"]["rectified"]["value"] == pytest.approx(1.0)
    again = ("--labels", "done.jsonl", "--already-random", "--n", "8", "--out", "plan-2.jsonl")
    assert apbjudge("plan-labels", "a", *again).code == 0
    second = [
        json.loads(line) for line in (tmp_path / "plan-2.strata.jsonl").read_text().splitlines()
    ]
    known = {(row["item_id"], row["tested_model"]) for row in begun}
    assert {(r["item_id"], r["tested_model"]) for r in second if r["order"] == 0} == known


def test_unusable_requests_of_a_plan_get_one_line(apbjudge: Command) -> None:
    is_one_line(apbjudge("plan-labels", "none"), "none: can't be read: No such file")
    is_one_line(apbjudge("plan-labels", "a", "--n", "0"), "--n: expected a whole number")
    is_one_line(apbjudge("plan-labels", "a", "--n", "3"), "--n: expected at least 10, so that")
    is_one_line(apbjudge("plan-labels", "a", "--by", "colour"), "--by: expected some of")
    is_one_line(apbjudge("plan-labels", "a", "--format", "xml"), "--format: expected one of text")
    is_one_line(apbjudge("plan-labels", "a", "--anticipated", "2"), "--anticipated: expected")
    is_one_line(apbjudge("plan-labels", "a", "--out", "labels.jsonl"), "--out: expected a new file")
