"""``check`` and ``build`` as commands."""

from __future__ import annotations

import json
from pathlib import Path

from .conftest import Command


def test_findings_go_to_a_file_and_set_the_exit_code(apbjudge: Command, tmp_path: Path) -> None:
    cases, findings = tmp_path / "cases.jsonl", tmp_path / "findings.jsonl"
    row = {"id": "a", "split": "step_wise_tool_broken", "query": "Go on."}
    cases.write_text(f"{json.dumps(row)}\nnonsense\n", encoding="utf-8")
    result = apbjudge("check", str(cases), "--findings", str(findings))
    assert result.code == 3
    listed = [json.loads(line) for line in findings.read_text(encoding="utf-8").splitlines()]
    places = {(each["check"], each["line"]) for each in listed}
    assert {("missing-condition", 1), ("unreadable", 2)} <= places
    assert apbjudge("check", str(cases), "--fail-on", "none").code == 0
    only = apbjudge("check", str(cases), "--only", "no-reference")
    assert only.code == 0
    assert apbjudge("check", str(cases), "--only", "nope").code == 2
    assert apbjudge("check", str(tmp_path / "absent.jsonl")).code == 2
    same = apbjudge("check", str(cases), "--findings", str(cases))
    assert same.code == 2
    assert apbjudge("check", str(cases), "--run", "x").code == 2
