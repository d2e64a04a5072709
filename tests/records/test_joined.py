"""Cases in one file, predictions in another, joined on id."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from apbjudge import InputError, grade
from tests.support.judging import write_rows
from tests.support.rows import FIND_OK, plan, plan_row, published


def _write(path: Path, *rows: dict[str, Any]) -> Path:
    return write_rows(path, rows)


CASE = {k: v for k, v in plan_row("x").items() if k not in ("tested_model", "model_response")}


def _reply(model: str, **fields: Any) -> dict[str, Any]:
    answer = {"id": "case-1", "tested_model": model, "model_response": json.dumps(plan(FIND_OK))}
    return answer | fields


def test_cases_and_predictions_are_joined_on_id(tmp_path: Path) -> None:
    cases = _write(tmp_path / "c.jsonl", CASE | {"id": "other", "tools": []}, published(CASE))
    predictions = _write(tmp_path / "p.jsonl", _reply("alder"), _reply("birch"))
    joined = grade(predictions, cases=cases)
    whole = grade([CASE | _reply("alder"), CASE | _reply("birch")])
    assert [(j.tested_model, j.is_correct, j.findings) for j in joined.judgements] == [
        (j.tested_model, j.is_correct, j.findings) for j in whole.judgements
    ]
    assert [j.is_correct for j in joined.judgements] == [True, True]


def test_a_prediction_may_have_an_id_of_its_own_beside_the_cases(tmp_path: Path) -> None:
    cases = _write(tmp_path / "c.jsonl", CASE)
    mine = _reply("alder", id="run-7", case_id="case-1")
    (judged,) = grade(_write(tmp_path / "p.jsonl", mine), cases=cases).judgements
    assert (judged.kind, judged.item_id, judged.case_id) == ("verdict", "run-7", "case-1")


def test_null_in_a_prediction_does_not_erase_what_the_case_says(tmp_path: Path) -> None:
    cases = _write(tmp_path / "c.jsonl", CASE)
    wrong = _reply("alder", tools=None, query=None, model_response=json.dumps(plan(("x", {}))))
    (judged,) = grade(_write(tmp_path / "p.jsonl", wrong), cases=cases).judgements
    assert [f.rule for f in judged.findings] == ["unknown-tool"]


def test_a_reply_that_stands_in_the_cases_file_is_never_graded(tmp_path: Path) -> None:
    cases = _write(tmp_path / "c.jsonl", CASE | {"tested_model": "m", "model_response": "leak"})
    row = {"id": "case-1", "tested_model": "alder"}
    rows = [row, _reply("birch")]
    judged, _ = grade(_write(tmp_path / "p.jsonl", *rows), cases=cases).judgements
    assert (judged.kind, judged.reason) == ("unscored", "bad_input")
    assert "model_response" in judged.detail
    with pytest.raises(InputError, match="no column for the reply"):
        grade(_write(tmp_path / "p.jsonl", row), cases=cases)


def test_a_prediction_without_its_case_is_a_bad_row(tmp_path: Path) -> None:
    cases = _write(tmp_path / "c.jsonl", CASE)
    odd = [_reply("birch") | {"id": item} for item in ("nowhere", None, ["case-1"])]
    rows = _write(tmp_path / "p.jsonl", _reply("alder"), *odd)
    good, *bad = grade(rows, cases=cases).judgements
    assert (good.kind, {one.kind for one in bad}) == ("verdict", {"unscored"})
    assert bad[0].detail.startswith(f"{rows}:2: field id: ")


@pytest.mark.parametrize("line", ["{", '{"id": ""}', json.dumps(CASE)])
def test_a_bad_line_among_the_cases_ends_the_run_and_is_named(tmp_path: Path, line: str) -> None:
    cases = tmp_path / "c.jsonl"
    cases.write_text(f"{json.dumps(CASE)}\n{line}\n")
    with pytest.raises(InputError, match=r"c\.jsonl:2: field "):
        grade(_write(tmp_path / "p.jsonl", _reply("alder")), cases=cases)
