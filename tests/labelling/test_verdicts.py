"""A judge's verdicts, found in a run's file."""

from __future__ import annotations

import json
from pathlib import Path

from apbjudge.labelling.verdicts import Verdicts
from tests.reports.rows import verdict


def test_a_row_of_the_run_that_is_no_judgement_is_left_out(tmp_path: Path) -> None:
    row = verdict("a")
    rows = [{**row, "item_id": ["a"]}, {**row, "tested_model": None}, row]
    path = tmp_path / "judgements.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in rows), encoding="utf-8")
    verdicts = Verdicts(tmp_path, [("a", "m")])
    shown = verdicts.of(("a", "m"))
    assert shown is not None
    assert (shown["judge"], shown["kind"], shown["is_correct"]) == ("j", "verdict", True)
