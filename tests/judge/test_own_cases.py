"""A judge that wrote parts of the cases it judges: it is said, once, and stands in the manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from apbjudge import Events, Run, grade
from apbjudge.llm import ScriptedClient
from tests.support.judging import RIGHT, plan_row, write_rows

WRITER = "openai/gpt-5"
ROWS = [
    plan_row("own-1", construction={"model": WRITER}),
    plan_row("own-2", construction={"model": f"{WRITER}-2025-08-07"}),
    plan_row("other", construction={"model": "openai/gpt-5.1"}),
    plan_row("by code", construction={"seed": "s"}),
    plan_row("unknown"),
]


def graded(rows: Any, **settings: Any) -> tuple[Run, list[str]]:
    notes: list[str] = []
    events = Events(lambda progress: None, notes.append, notes.append)
    client = ScriptedClient(lambda request: RIGHT)
    run = grade(rows, client=client, events=events, **{"judge": WRITER, **settings})
    return run, [note for note in notes if "wrote" in note]


def test_a_judge_of_its_own_cases_is_named_once() -> None:
    run, notes = graded(ROWS)
    assert notes == [f"warning: {WRITER} judges 2 rows of cases that it wrote in part"]
    assert run.manifest["rows_of_own_cases"] == 2
    assert run.manifest["cases_written_by"] == {
        WRITER: 1,
        f"{WRITER}-2025-08-07": 1,
        "openai/gpt-5.1": 1,
    }


@pytest.mark.parametrize("judge", ["static", "openai/gpt-5-mini"])
def test_other_judges_are_not(judge: str) -> None:
    run, notes = graded(ROWS, judge=judge)
    assert notes == []
    assert "rows_of_own_cases" not in run.manifest
    assert run.manifest["cases_written_by"][WRITER] == 1


def test_cases_and_predictions_in_two_files(tmp_path: Path) -> None:
    answers = ("tested_model", "model_response")
    cases = [{k: v for k, v in row.items() if k not in answers} for row in ROWS]
    predictions = [{"id": row["id"], **{k: row[k] for k in answers}} for row in ROWS]
    files = write_rows(tmp_path / "cases.jsonl", cases), tmp_path / "predictions.jsonl"
    run, notes = graded(write_rows(files[1], predictions), cases=files[0], out=tmp_path / "out")
    assert len(notes) == 1
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    assert manifest["rows_of_own_cases"] == run.manifest["rows_of_own_cases"] == 2
    again, notes = graded(files[1], cases=files[0], out=tmp_path / "out")
    assert again.progress.skipped == len(ROWS)
    assert len(notes) == 1


def test_each_judge_of_a_panel_is_looked_at_alone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    _, notes = graded(ROWS, judge=[WRITER, "openai/gpt-4o"], out=out)
    assert notes == [f"warning: {WRITER} judges 2 rows of cases that it wrote in part"]
    manifests = {
        path.parent.name: json.loads(path.read_bytes()).get("rows_of_own_cases")
        for path in out.glob("judges/*/manifest.json")
    }
    assert manifests == {"openai-gpt-5": 2, "openai-gpt-4o": None}
