"""Cases that a tested model has no prediction of: named, and counted where that is asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge import InputError, JudgeSpec, OptionError, Run, ScriptedClient, summary_text
from apbjudge.calibration.compare import compare
from apbjudge.errors import RowError
from apbjudge.records import Unscored
from apbjudge.reports.judged_items import ReportItems, sources_of
from apbjudge.runs.loop import Events
from apbjudge.runs.rows import Cases
from tests.support.judging import RIGHT, plan_row, read_rows, step_row, verdict, write_rows

SPEC = JudgeSpec(model="scripted/judge", max_concurrency=4)
WRONG = json.dumps(verdict("E4"))
COUNT: dict[str, Any] = {"missing": "count"}


def without_response(row: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in row.items() if k not in ("tested_model", "model_response")}


def case(name: str, **changes: Any) -> dict[str, Any]:
    """A case that nothing can be proven against."""
    return without_response(plan_row(name, **changes))


def prediction(name: str, model: str = "alder", sample: int = 0, **more: Any) -> dict[str, Any]:
    """A lean row as predict writes it."""
    row = {
        "id": f"{name}#{sample + 1}" if sample else name,
        "case_id": name,
        "tested_model": model,
        "model_response": plan_row(name)["model_response"],
    }
    return row | more


class Files:
    """A file of cases and one of predictions, and a run on them."""

    def __init__(self, folder: Path, cases: Iterable[dict[str, Any]]) -> None:
        self.folder = folder
        self.cases = write_rows(folder / "cases.jsonl", cases)
        self.notes: list[str] = []
        self.bad: list[str] = []

    def grade(self, rows: Sequence[dict[str, Any]], **options: Any) -> Run:
        path = write_rows(self.folder / "p.jsonl", rows)
        events = Events(lambda progress: None, self.bad.append, self.notes.append)
        return apbjudge.grade(path, cases=self.cases, events=events, **options)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path, [case(f"c{i}") for i in range(5)])


def rates(run: Run) -> dict[str, tuple[float | None, int]]:
    """CR, or its bound, by tested model with its denominator."""
    return {
        group.tested_model: (first.value, first.n_items)
        for group in run.summary.groups
        for first in [next(iter(group.metrics.values()))]
    }


def missing_rows(run: Run) -> list[Unscored]:
    return [row for row in run.judgements if isinstance(row, Unscored)]


ROWS = [prediction("c0"), prediction("c3"), *(prediction(f"c{i}", "birch") for i in range(5))]


def test_they_are_named_and_in_no_figure(files: Files, tmp_path: Path) -> None:
    run = files.grade(ROWS, out=tmp_path / "run")
    assert files.notes == ["alder: no prediction of 3 of 5 cases (c1, c2, c4): in no figure"]
    assert rates(run) == {"alder": (1.0, 2), "birch": (1.0, 5)}
    assert len(list(run.judgements)) == len(ROWS)
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    first = [{"line": at + 1, "id": f"c{at}"} for at in (1, 2, 4)]
    of_alder = {"tested_model": "alder", "missing": 3, "first": first, "samples": 1}
    stated = {"cases": 5, "counted": False, "by_model": [of_alder]}
    assert manifest["missing_predictions"] == stated
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["missing_predictions"] == stated


def test_finished_rows_are_counted_as_when_they_were_judged(files: Files, tmp_path: Path) -> None:
    client = ScriptedClient(lambda request: RIGHT)
    options: dict[str, Any] = {"judge": "scripted/judge", "client": client, "out": tmp_path / "run"}
    rows = [row | {"odd": 1} for row in ROWS]
    first, again = (files.grade(rows, **options).manifest for _ in range(2))
    assert (first["scored"], first["input_gaps"]["unread"]) == (len(ROWS), {"odd": len(ROWS)})
    for name in ("missing_predictions", "input_gaps", "scored", "unscored"):
        assert again[name] == first[name]
    assert files.grade([*rows, rows[0]], **options).manifest["unscored"] == {"bad_input": 1}
    assert len(client.requests) == len(ROWS)


def test_counted_ones_are_records_and_not_correct(files: Files) -> None:
    run = files.grade(ROWS, **COUNT)
    assert files.notes == ["alder: no prediction of 3 of 5 cases (c1, c2, c4): not correct"]
    assert rates(run) == {"alder": (2 / 5, 5), "birch": (1.0, 5)}
    for row, number in zip(missing_rows(run), (1, 2, 4), strict=True):
        name = f"c{number}"
        assert (row.item_id, row.case_id, row.tested_model) == (name, name, "alder")
        assert (row.reason, row.groups["steps"]) == ("missing", "1-5")
        assert row.detail == f"{files.cases}:{number + 1}: no prediction by alder"
        assert (row.protocol, row.rubric, row.line) == ("holistic", "apb-holistic@1", 0)
    (group,) = (g for g in run.summary.groups if g.tested_model == "alder")
    assert (group.n, group.scored) == (5, 2)
    codes = [figure.n_items for name, figure in group.metrics.items() if name[0] == "E"]
    assert codes == [2] * 6
    assert group.metrics["over-refusal"].n_items == 2
    assert group.metrics["no provable fault"].bound == "upper"
    assert (run.summary.totals.missing, run.unscored_fraction) == (3, 0.0)


def test_a_case_with_one_sample_of_four_is_not_missing(files: Files) -> None:
    rows = [prediction(f"c{i}", sample=n) for i in range(3) for n in range(4)]
    run = files.grade([*rows, prediction("c3")], **COUNT)
    line = "alder: no prediction of 1 of 5 cases (c4): not correct, 3 samples each"
    assert files.notes == [line]
    assert [row.item_id for row in missing_rows(run)] == ["c4", "c4#2", "c4#3"]
    assert rates(run) == {"alder": (13 / 16, 16)}


def test_a_row_that_can_t_be_used_is_a_prediction_all_the_same(files: Files) -> None:
    rows = [prediction("c0"), prediction("c1", model_response=None)]
    run = files.grade(rows, **COUNT)
    assert files.notes == ["alder: no prediction of 3 of 5 cases (c2, c3, c4): not correct"]
    assert len(files.bad) == 1
    assert rates(run) == {"alder": (1 / 4, 4)}
    assert run.unscored_fraction == 1 / 2


# Protocols ----------------------------------------------------------------------------------------


def test_each_protocol_keeps_them_in_its_denominators(tmp_path: Path) -> None:
    broken = {"broken_tool_name": "find_train", "replacement_tool": {"name": "other"}}
    cases = [
        *(case(f"u{i}", unsolvable_type="tool_removal", tools=[]) for i in range(2)),
        *(without_response(step_row(f"b{i}", {}, **broken)) for i in range(2)),
        *(case(f"x{i}", extraneous_tool_names=["other"], case_id=f"x{i}") for i in range(2)),
        *(case(f"e{i}") for i in range(2)),
    ]
    cases[4]["case_id"] = "e0"
    files = Files(tmp_path, cases)
    rows = [
        prediction("u0", model_response='{"status": "REJECT", "reason": "no tool is left"}'),
        prediction("b0", model_response=step_row("b0", {"city": "Porto"})["model_response"]),
        prediction("x1"),
        prediction("e0"),
    ]
    run = files.grade(rows, **COUNT)
    figures = {g.protocol: g.metrics for g in run.summary.groups}
    refusal = figures["unsolvable"]["refusal tool_removal"]
    assert (refusal.value, refusal.n_items) == (0.5, 2)
    behaviours = {k: e for k, e in figures["tool-broken"].items() if k[0].isdigit()}
    assert [e.n_items for e in behaviours.values()] == [2] * 5
    assert sum(e.value or 0.0 for e in behaviours.values()) == pytest.approx(0.5)
    assert "undecided" not in figures["tool-broken"]
    extraneous = figures["tool-extraneous"]
    assert (extraneous["ExtUse"].n_items, extraneous["TC"].n_items) == (1, 1)
    name = "no provable fault"
    with_, without = extraneous[f"{name}, distractors"], extraneous[f"{name}, base"]
    assert (with_.value, without.value, with_.n_items) == (0.0, 1.0, 1)  # the pair of case e0
    assert (figures["holistic"][name].value, figures["holistic"][name].n_items) == (0.5, 2)


# Sessions -----------------------------------------------------------------------------------------


def scripted(files: Files, rows: Sequence[dict[str, Any]], out: Path, **options: Any) -> int:
    """Grades with a scripted judge into a folder; returns how many requests were made."""
    client = ScriptedClient(lambda request: RIGHT)
    files.grade(rows, judge=SPEC, client=client, out=out, **options)
    return len(client.requests)


def test_a_later_session_with_more_predictions_judges_them(files: Files, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert scripted(files, ROWS, out) == 7
    assert scripted(files, ROWS, out, **COUNT) == 0
    assert sum(row["reason"] == "missing" for row in read_rows(out)) == 3
    assert scripted(files, [*ROWS, prediction("c2")], out, **COUNT) == 1
    rows = read_rows(out)
    assert [row["item_id"] for row in rows if row["reason"] == "missing"] == ["c1", "c4"]
    assert len(rows) == 10
    assert not (out / "superseded.jsonl").exists()
    assert json.loads((out / "summary.json").read_text())["groups"][0]["n"] == 5
    assert scripted(files, [*ROWS, prediction("c2")], out) == 0
    assert len(read_rows(out)) == 8


def test_parts_put_together_are_the_whole_run(tmp_path: Path) -> None:
    files = Files(tmp_path, [case(f"c{i}", case_id=f"g{i % 9}") for i in range(20)])
    rows = [prediction(f"c{i}", "alder", s, case_id=f"g{i % 9}") for i in range(12) for s in (0, 1)]
    rows += [prediction(f"c{i}", "birch", case_id=f"g{i % 9}") for i in range(0, 20, 3)]
    whole = files.grade(rows, out=tmp_path / "whole", **COUNT)
    parts = [tmp_path / f"part-{i}" for i in (1, 2, 3)]
    for i, part in enumerate(parts, 1):
        files.grade(rows, out=part, shard=f"{i}/3", **COUNT)
    merged = apbjudge.shards_merge(parts, tmp_path / "merged")
    assert summary_text(merged.summary) == summary_text(whole.summary)
    assert merged.manifest["missing_predictions"] == whole.manifest["missing_predictions"]
    assert whole.summary.missing is not None
    assert [of.missing for of in whole.summary.missing.by_model] == [8, 13]
    by_id = [
        sorted(read_rows(folder), key=lambda row: (row["item_id"], row["tested_model"]))
        for folder in (tmp_path / "whole", tmp_path / "merged")
    ]
    assert by_id[0] == by_id[1]


# Several judges -----------------------------------------------------------------------------------


BAD = {"id": "bad", "tested_model": "alder", "case_id": "c0"}


@pytest.mark.parametrize(
    ("judges", "name"),
    [
        ({"judge": ["scripted/a", "scripted/b"]}, "panel(scripted/a+scripted/b)"),
        (
            {"judge": JudgeSpec(model="scripted/a", samples=2), "escalate": "scripted/b"},
            "cascade(scripted/a->scripted/b)",
        ),
    ],
    ids=["panel", "cascade"],
)
def test_several_judges_are_not_asked_about_them_either(
    files: Files, tmp_path: Path, judges: dict[str, Any], name: str
) -> None:
    """Nor about rows that can't be used, nor about empty replies, which are not correct."""
    client = ScriptedClient(lambda request: WRONG if request.sample else RIGHT)
    rows = [BAD, prediction("c0", model_response=" "), *ROWS[1:]]
    run = files.grade(rows, client=client, out=tmp_path / "c", **judges, **COUNT)
    assert [request.model for request in client.requests].count("scripted/b") == 6
    (empty,) = (j for j in run.judgements if (j.item_id, j.tested_model) == ("c0", "alder"))
    assert empty.is_correct is False
    said = "alder: no prediction of 3 of 5 cases (c1, c2, c4): not correct"
    assert files.notes.count(said) == 1
    assert run.summary.totals.unscored == {"bad_input": 1, "missing": 3}
    assert {row.judge for row in run.judgements} == {name}
    table = apbjudge.report(tmp_path / "c").tables[0]  # all rows are those of the whole
    assert [row.counts["Holistic"].rows for row in table.lines] == [5, 5]


# What is made of runs -----------------------------------------------------------------------------


def test_a_comparison_of_tested_models_takes_them_as_not_correct(
    files: Files, tmp_path: Path
) -> None:
    run = files.grade(ROWS, judge=SPEC, client=ScriptedClient(lambda r: RIGHT), **COUNT)
    result = compare(run, run, tested_models=("alder", "birch"))
    (difference,) = (d for d in result.differences if d.name == "CR")
    assert result.n_compared == 5
    assert difference.difference.value == pytest.approx(-3 / 5)
    assert any("3 pairs have a case without a prediction" in note for note in result.notes)


def test_a_report_counts_them_says_so_and_shows_their_cases(files: Files, tmp_path: Path) -> None:
    files.grade(ROWS, out=tmp_path / "run", **COUNT)
    report = apbjudge.report(tmp_path / "run")
    alder, birch = report.tables[0].lines
    assert alder.cells["Holistic", "CR"].estimate.value == 0.4
    assert (alder.counts["Holistic"].rows, alder.counts["Holistic"].scored) == (5, 2)
    assert birch.cells["Holistic", "CR"].estimate.value == 1.0
    assert any("alder: no prediction of 3 of 5 cases" in note for note in report.tables[0].notes)
    sources = sources_of(report.judges, report.config, [])
    entries = [*ReportItems(report.judges, sources, None, [])]
    (shown,) = (e.item for e in entries if (e.item_id, e.tested_model) == ("c2", "alder"))
    assert shown is not None
    assert (shown.query, shown.response) == ("Which trains go to Porto? (c2)", "")


# Hostile input ------------------------------------------------------------------------------------


def test_a_bad_case_among_the_missing_is_an_unusable_row(tmp_path: Path) -> None:
    cases = [case("c0"), case("c1", split="nonsense"), case("c2"), case("taken")]
    files = Files(tmp_path, [*cases, case("c4", planning_regime="Step-wise")])
    rows = [prediction("c0", id="taken")]
    run = files.grade(rows, protocol="holistic", **COUNT)
    assert sorted(message.split(": expected ")[0] for message in files.bad) == [
        f"{files.cases}:2: field split",
        f"{files.cases}:4: field id",
        f"{files.cases}:5: field planning_regime",
    ]
    assert run.summary.totals.unscored == {"bad_input": 3, "missing": 1}
    assert rates(run) == {"alder": (0.5, 2)}
    files.bad.clear()
    files.grade(rows)
    assert files.bad == []  # nobody reads them
    assert files.notes[-1].startswith("alder: no prediction of 4 of 5 cases (c1, c2, taken, c4)")


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("c0", "c0 occurs twice"),
        ("a\n", "expected a non-empty string of printable characters"),
    ],
)
def test_cases_without_an_id_of_their_own_are_refused(
    tmp_path: Path, name: str, complaint: str
) -> None:
    files = Files(tmp_path, [case("c0"), {**case("c1"), "id": name}])
    with pytest.raises(InputError, match=rf"cases.jsonl:2: field id: {complaint}"):
        files.grade([prediction("c0")])


def test_counting_needs_to_know_which_cases_there_are() -> None:
    with pytest.raises((OptionError, ValueError), match="--missing: expected --cases with it"):
        apbjudge.grade(ROWS, missing="count")


# Which case a prediction is of --------------------------------------------------------------------


def test_a_case_id_that_several_cases_share_does_not_hide_the_case(tmp_path: Path) -> None:
    shared = [case("x", case_id="x"), case("x-4", case_id="x"), case("y", case_id="z")]
    cases = Cases(write_rows(tmp_path / "c.jsonl", shared))
    for row, expected in (
        ({"id": "x#2", "case_id": "x"}, 0),
        ({"id": "x-4#3", "case_id": "x"}, 1),
        ({"id": "y#2", "case_id": "y"}, 2),
        ({"id": "y"}, 2),
        ({"id": "mine", "case_id": "x-4"}, 1),
        ({"id": "y", "case_id": "x"}, 0),  # a number of its own that happens to be a case's
    ):
        assert cases.index(row) == expected, row
    with pytest.raises(RowError, match="the id of a case"):
        cases.index({"id": "q#2", "case_id": "z"})
