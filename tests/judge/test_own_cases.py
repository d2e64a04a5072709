"""A judge that wrote parts of the cases it judges: it is said, once, and stands in the manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


def test_a_judge_of_its_own_cases_is_named_once(tmp_path: Path) -> None:
    """Also where cases and predictions are in two files, and in each session."""
    warning = [f"warning: {WRITER} judges 2 rows of cases that it wrote in part"]
    assert graded(ROWS, judge=[WRITER, "openai/gpt-5-mini"])[1] == warning  # the other is not
    answers = ("tested_model", "model_response")
    bare = [{k: v for k, v in row.items() if k not in answers} for row in ROWS]
    cases = write_rows(tmp_path / "cases.jsonl", bare)
    predictions = [{"id": row["id"], **{k: row[k] for k in answers}} for row in ROWS]
    path = write_rows(tmp_path / "predictions.jsonl", predictions)
    for skipped in (0, len(ROWS)):
        run, notes = graded(path, cases=cases, out=tmp_path / "out")
        assert (notes, run.progress.skipped) == (warning, skipped)
        assert run.manifest["rows_of_own_cases"] == 2
    writers = {WRITER: 1, f"{WRITER}-2025-08-07": 1, "openai/gpt-5.1": 1}
    assert run.manifest["cases_written_by"] == writers
