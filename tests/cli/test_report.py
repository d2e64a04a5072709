"""The report command: every format, where it goes, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import apbjudge as package
from apbjudge.reports.judged_items import ReportItems
from tests.support.judging import plan_row

from .conftest import Command, example, process


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "static"
    package.grade(example("holistic"), out=folder)
    return folder


@pytest.mark.slow
def test_a_page_and_figures_are_written(run: Path, apbjudge: Command, tmp_path: Path) -> None:
    options = ["--table", "efficiency,overall", "--figures", "drawn", "--format", "html"]
    refused = apbjudge("report", run, *options)
    assert refused.code == 2
    assert "efficiency" in refused.err
    options[1] = "overall"
    shown = apbjudge("report", run, *options, "--out", "page.html")
    assert (shown.code, shown.out) == (0, "")
    assert "written: page.html (27 items, " in shown.err
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    drawn = {path.suffix for path in (tmp_path / "drawn").iterdir()}
    assert drawn == {".svg", ".pdf", ".png", ".csv"}


def test_a_sample_is_stated_on_the_page_and_on_the_terminal(
    run: Path, apbjudge: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ReportItems, "note", "The list has 1 of 2 items.")
    shown = apbjudge("report", run, "--table", "steps", "--format", "html")
    assert (shown.code, shown.err.splitlines()[-1]) == (0, "note: The list has 1 of 2 items.")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<li>The list has 1 of 2 items.</li>" in page


def test_unusable_options_are_named(run: Path, apbjudge: Command) -> None:
    for options, complaint in {
        "--format docx": "--format: expected one of text, html, md, latex, csv",
        "--table changes --format latex": "got latex",
        "--table changes": "--table changes: expected two runs",
        "--refined runs/x": "--refined: expected METHOD=RUN",
        "--labels nowhere.jsonl": "nowhere.jsonl",
        "--format md --out no/such/folder/x.md": "can't be written",
    }.items():
        shown = apbjudge("report", run, *options.split())
        assert (shown.code, shown.err.count("\n")) == (2, 1)
        assert complaint in shown.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.slow
def test_a_full_standard_output_is_one_line(run: Path, tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        shown = process("report", run, "--table", "steps", cwd=tmp_path, stdout=full)
    assert shown.code == 2
    assert shown.err == "apbjudge: standard output: can't be written: No space left on device\n"


def test_no_text_from_data_is_a_formula_in_any_csv_file(tmp_path: Path, apbjudge: Command) -> None:
    formula = '=HYPERLINK("http://127.0.0.1","x")'
    rows = [
        plan_row(name, tested_model=model, task_category="@SUM(1)", format_demanded=True)
        for name in ("+1", "b")
        for model in (formula, "-2+3")
    ]
    package.grade(rows, out=tmp_path / "one", by=["category"])
    worse = [{**row, "model_response": "no plan"} for row in rows]
    package.grade(worse, out=tmp_path / "two", by=["category"])
    figures = ("--figures", tmp_path / "drawn")
    of_one = apbjudge("report", tmp_path / "one", "--format", "csv", *figures)
    two = (tmp_path / "one", tmp_path / "two")
    changes = apbjudge("report", *two, "--table", "changes", "--format", "csv")
    files = [path.read_text(encoding="utf-8") for path in tmp_path.glob("*/*.csv")]
    assert len(files) > 3
    texts = [of_one.out, changes.out, *files]
    cells = [cell for text in texts for row in csv.reader(io.StringIO(text)) for cell in row]
    assert {f"'{formula}", "'-2+3", "'@SUM(1)", "+1"} <= set(cells)
    assert not [c for c in cells if c.startswith(("=", "@", "\t", "\r"))]
    assert {c for c in cells if c.startswith(("+", "-"))} <= {"+1", "-"}


def test_a_paper_is_reproduced_as_far_as_the_folders_go(
    run: Path, apbjudge: Command, tmp_path: Path
) -> None:
    options = ("--only", "Table 1,Table 5,Figure 59", "--figures", "drawn", "--format", "json")
    shown = apbjudge("reproduce", "apb", run, *options)
    assert shown.code == 0
    parts = json.loads(shown.out)["parts"]
    assert [(part["place"], part["state"]) for part in parts] == [
        ("Table 1", "made"),
        ("Table 5", "needs data"),
        ("Figure 59", "made"),
    ]
    assert parts[0]["table"]["key"] == "overall"
    assert (tmp_path / "drawn" / "error-profile.csv").is_file()
    shown = apbjudge("reproduce", "apb", run, "--only", "Table 1", "--format", "md")
    assert "# Agent Planning Benchmark: tables and figures" in shown.out
    assert apbjudge("reproduce", "apd").code == 2
    assert apbjudge("reproduce", "apb", "nowhere").code == 2
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "manifest.json").write_text('{"models": {"m": {}}}')
    shown = apbjudge("report", "p", "--table", "tested-models", "--format", "csv", "--out", "m.csv")
    assert (tmp_path / "m.csv").read_text().startswith("Tested model,Run,Model,")
    again = ("report", "p", "--table", "tested-models", "--format", "md", "--out", "m.csv")
    assert apbjudge(*again).code == 0  # a report of ours is replaced
    refused = apbjudge("report", "p", "--format", "html")
    assert (refused.code, "folders of judged runs" in refused.err) == (2, True)
    assert "not judged yet: apbjudge grade p" in apbjudge("reproduce", "apb", "p").out


def test_a_leaderboard_is_written_as_csv_and_as_json(apbjudge: Command) -> None:
    def judge(row: package.Item) -> dict[str, object]:
        return {"is_correct": row.tested_model != "cress"}

    rows = [
        plan_row(f"{model}-{n}", tested_model=model, case_id=f"c{n}")
        for model in ("alder", "birch", "cress")
        for n in range(30)
    ]
    package.grade(rows, judge=judge, out="run")
    labels = [
        {"item_id": row["id"], "is_correct": row["tested_model"] == "alder"} for row in rows[:60]
    ]
    Path("labels.jsonl").write_text("".join(json.dumps(of) + "\n" for of in labels))
    for name in ("board.csv", "board.json"):
        for _ in range(2):  # it replaces its own
            done = apbjudge("report", "run", "--labels", "labels.jsonl", "--leaderboard", name)
            assert (done.code, f"written: {name}" in done.err) == (0, True)
    board = json.loads(Path("board.json").read_text())["leaderboard"]
    places = {of["tested_model"]: (of["tier"], of["rank_low"], of["rank_high"]) for of in board}
    assert places == {"alder": (1, 1, 2), "birch": (1, 1, 2), "cress": (2, 3, 3)}
    first = board[0]
    assert (first["metric"], first["value"], first["n_items"]) == ("CR", 1.0, 30)
    assert (first["judge_agreement"], first["judge_labels"]) == (0.5, 60)
    table = list(csv.DictReader(io.StringIO(Path("board.csv").read_text())))
    assert [of["tested_model"] for of in table] == ["alder", "birch", "cress"]
    assert list(table[0]) == list(first)
    Path("other.csv").write_text("name,value\n")
    refused = apbjudge("report", "run", "--leaderboard", "other.csv")
    assert (refused.code, "exists and is no report" in refused.err) == (2, True)


def test_bounds_have_no_tiers(run: Path) -> None:
    board = package.report(run).leaderboard
    assert {(of["bound"], of["tier"]) for of in board} == {("upper", None)}
