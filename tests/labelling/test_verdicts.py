"""A judge's verdicts, found in a run's file."""

from __future__ import annotations

import json
from pathlib import Path

from apbjudge.labelling.verdicts import Verdicts


def test_a_row_of_the_run_that_is_no_judgement_is_left_out(tmp_path: Path) -> None:
    row = {"item_id": "a", "tested_model": "m", "judge": "j", "kind": "verdict"}
    rows = [{**row, "item_id": ["a"]}, {**row, "tested_model": None}, row]
    path = tmp_path / "judgements.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in rows), encoding="utf-8")
    verdicts = Verdicts(tmp_path, [("a", "m")])
    assert verdicts.of(("a", "m")) == {"judge": "j", "kind": "verdict"}
