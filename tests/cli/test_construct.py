"""``check`` and ``build`` as commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from apbjudge.construction.build import CASES

from .conftest import EXAMPLES, Command

TOWN = EXAMPLES / "runs" / "town.jsonl"


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


@pytest.mark.slow
def test_folders_stand_for_their_cases_and_each_command_names_the_next(
    apbjudge: Command, tmp_path: Path
) -> None:
    """No path of a file, no key and no line over 80 characters, from a log to a report."""
    model, root = "scripted/no-model", ("--data-root", str(EXAMPLES))
    table = tmp_path / "questions.csv"
    table.write_text("question\nWhich house has a blue door?\n")
    tools = tmp_path / "api.json"
    operations = {"/houses": {"get": {"operationId": "houses"}}}
    tools.write_text(json.dumps({"openapi": "3.1.0", "paths": operations}))
    steps: list[tuple[object, ...]] = [
        ("build", TOWN, "--split", "all", *root, "--out", "built"),
        ("check", "built", *root),
        ("predict", "built", *root, "--model", model, "--out", "drafts"),
        ("check", "drafts", *root),
        ("predict", "drafts", *root, "--model", model, "--out", "again"),
        ("predict", table, "--tools", tools, "--model", model, "--out", "asked"),
        ("grade", "asked", "--out", "graded"),
        ("report", "graded"),
        ("execute", EXAMPLES / "suites" / "storeroom.py", "--mode", "null", "--out", "idle"),
        ("check", "idle"),
        ("validate", "idle"),
    ]
    named = {"build": f"check built --data-root {EXAMPLES}", "predict": "grade asked"}
    for step in steps:
        done = apbjudge(*step)
        assert done.code == 0, (step, done.err)
        if step[0] != "grade":  # whose remarks are a line each off a terminal
            assert max(map(len, done.out.splitlines())) <= 80, step
        if step[0] == "build" or step[-1] == "asked":
            assert f"next: apbjudge {named[str(step[0])]}\n" in done.err
    (row,) = map(json.loads, (tmp_path / "asked" / "predictions.jsonl").read_text().splitlines())
    assert [tool["name"] for tool in row["tools"]] == ["houses"]
    assert row["query"] == "Which house has a blue door?"
    drafts, again = (Path(name, "predictions.jsonl").read_text() for name in ("drafts", "again"))
    assert (
        drafts.count("\n")
        == again.count("\n")
        == (tmp_path / "built" / CASES).read_text().count("\n")
    )
    for folder in ("drafts", "built"):
        done = apbjudge(
            "label", folder, *root, "--out", "l", "--export-label-studio", f"ls-{folder}"
        )
        assert done.code == 0, done.err
