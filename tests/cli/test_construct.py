"""``check`` and ``build`` as commands."""

from __future__ import annotations

import json
from pathlib import Path

from apbjudge.construction.build import CASES

from .conftest import EXAMPLES, Command

TOWN = EXAMPLES / "runs" / "town.jsonl"


def test_the_commands_from_a_source_to_a_graded_run(apbjudge: Command, tmp_path: Path) -> None:
    out = tmp_path / "town"
    build = apbjudge(
        "build", str(TOWN), "--split", "all", "--data-root", str(EXAMPLES), "--out", str(out)
    )
    assert build.code == 0, build.err
    assert "8 seeds used" in build.out
    check = apbjudge("check", str(out / CASES), "--data-root", str(EXAMPLES), "--format", "md")
    assert check.code == 0, check.err
    assert "Table 10" in check.out
    page = tmp_path / "cases.html"
    shown = apbjudge(
        *("check", str(out / CASES), "--data-root", str(EXAMPLES)),
        *("--format", "html", "--out", str(page)),
    )
    assert shown.code == 0
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    stricter = apbjudge(
        "check", str(out / CASES), "--data-root", str(EXAMPLES), "--fail-on", "suspected"
    )
    assert stricter.code == 3


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
