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
from apbjudge.judge.dry_run import forecast, forecast_text
from apbjudge.llm.base import Request
from apbjudge.records import Unscored
from apbjudge.reports.judged_items import ReportItems, sources_of
from apbjudge.runs.loop import Events
from apbjudge.runs.rows import Cases
from tests.support.judging import RIGHT, plan_row, read_rows, step_row, verdict, write_rows

SPEC = JudgeSpec(model="scripted/judge", max_concurrency=4)
WRONG = json.dumps(verdict("E4"))
COUNT: dict[str, Any] = {"missing": "count"}
_RESPONSE = ("tested_model", "model_response")


def case(name: str, **changes: Any) -> dict[str, Any]:
    """A case that nothing can be proven against."""
    return {k: v for k, v in plan_row(name, **changes).items() if k not in _RESPONSE}


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

    def predictions(self, *rows: dict[str, Any]) -> Path:
        return write_rows(self.folder / "p.jsonl", rows)

    def grade(self, rows: Sequence[dict[str, Any]] | Path, **options: Any) -> Run:
        path = rows if isinstance(rows, Path) else self.predictions(*rows)
        events = Events(
            progress=lambda progress: None, bad_row=self.bad.append, note=self.notes.append
        )
        return apbjudge.grade(path, cases=self.cases, events=events, **options)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path, [case(f"c{i}") for i in range(5)])


def rates(run: Run) -> dict[str, tuple[float | None, int]]:
    """CR, or its bound, by tested model with its denominator."""
    return {
        group.tested_model: (first.value, first.n_items)
        for group in run.summary.groups
        for first in [next(iter(group.figures.values()))]
    }


def missing_rows(run: Run) -> list[Unscored]:
    found = [row for row in run.judgements if isinstance(row, Unscored)]
    assert {row.reason for row in found} <= {"missing"}
    return found


ROWS = [prediction("c0"), prediction("c3"), *(prediction(f"c{i}", "birch") for i in range(5))]


def test_they_are_named_and_in_no_figure(files: Files, tmp_path: Path) -> None:
    run = files.grade(ROWS, out=tmp_path / "run")
    assert files.notes == ["alder: no prediction of 3 of 5 cases (c1, c2, c4): in no figure"]
    assert rates(run) == {"alder": (1.0, 2), "birch": (1.0, 5)}
    assert len(list(run.judgements)) == len(ROWS)
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["missing_predictions"] == {
        "cases": 5,
        "counted": False,
        "by_model": [
            {
                "tested_model": "alder",
                "missing": 3,
                "first": [{"line": at + 1, "id": f"c{at}"} for at in (1, 2, 4)],
                "samples": 1,
            }
        ],
    }
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["missing_predictions"] == manifest["missing_predictions"]


def test_nothing_is_said_where_nothing_is_missing_or_nobody_knows_what_there_is(
    files: Files,
) -> None:
    run = files.grade([prediction(f"c{i}") for i in range(5)], **COUNT)
    assert files.notes == []
    assert run.summary.missing is not None
    assert run.summary.missing.by_model == ()
    alone = apbjudge.grade([plan_row("a")])
    assert alone.summary.to_json()["missing_predictions"] is None
    assert "missing_predictions" not in alone.manifest


def test_counted_ones_are_records_and_not_correct(files: Files) -> None:
    run = files.grade(ROWS, **COUNT)
    assert files.notes == ["alder: no prediction of 3 of 5 cases (c1, c2, c4): not correct"]
    assert rates(run) == {"alder": (2 / 5, 5), "birch": (1.0, 5)}
    found = missing_rows(run)
    assert [(row.item_id, row.case_id, row.tested_model) for row in found] == [
        (name, name, "alder") for name in ("c1", "c2", "c4")
    ]
    for row, line in zip(found, (2, 3, 5), strict=True):
        assert row.detail == f"{files.cases}:{line}: no prediction by alder"
        assert (row.protocol, row.rubric, row.line) == ("holistic", "apb-holistic@1", 0)
        assert row.groups["steps"] == "1-5"
        assert row.over_refusal is row.matches_reference is row.plan_cost is None
    (group,) = (g for g in run.summary.groups if g.tested_model == "alder")
    assert (group.n, group.scored) == (5, 2)
    codes = [figure.n_items for name, figure in group.figures.items() if name[0] == "E"]
    assert codes == [2] * 6
    assert group.figures["over-refusal"].n_items == 2
    assert group.figures["no provable fault"].bound == "upper"
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
        *(
            {k: v for k, v in step_row(f"b{i}", {}, **broken).items() if k not in _RESPONSE}
            for i in range(2)
        ),
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
    figures = {g.protocol: g.figures for g in run.summary.groups}
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
    assert scripted(files, ROWS, out, **COUNT) == 7
    assert scripted(files, ROWS, out, **COUNT) == 0
    assert sum(row["reason"] == "missing" for row in read_rows(out)) == 3
    assert scripted(files, [*ROWS, prediction("c2")], out, **COUNT) == 1
    rows = read_rows(out)
    assert [row["item_id"] for row in rows if row["reason"] == "missing"] == ["c1", "c4"]
    assert len(rows) == 10
    assert not (out / "superseded.jsonl").exists()
    assert not any("superseded" in note for note in files.notes)
    assert json.loads((out / "summary.json").read_text())["groups"][0]["n"] == 5


def test_the_setting_may_change_between_sessions(files: Files, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert scripted(files, ROWS, out) == 7
    assert scripted(files, ROWS, out, **COUNT) == 0
    assert len(read_rows(out)) == 10
    assert scripted(files, ROWS, out) == 0
    assert len(read_rows(out)) == 7


@pytest.mark.parametrize(("mode", "n"), [("report", 2), ("count", 7)])
def test_parts_put_together_are_the_whole_run(tmp_path: Path, mode: str, n: int) -> None:
    files = Files(tmp_path, [case(f"c{i}", case_id=f"g{i % 9}") for i in range(20)])
    rows = [prediction(f"c{i}", "alder", s, case_id=f"g{i % 9}") for i in range(12) for s in (0, 1)]
    rows += [prediction(f"c{i}", "birch", case_id=f"g{i % 9}") for i in range(0, 20, 3)]
    whole = files.grade(rows, out=tmp_path / "whole", missing=mode)
    parts = [tmp_path / f"part-{i + 1}" for i in range(n)]
    for i, part in enumerate(parts):
        files.grade(rows, out=part, missing=mode, shard=f"{i + 1}/{n}")
    merged = apbjudge.shards_merge(parts, tmp_path / "merged")
    assert summary_text(merged.summary) == summary_text(whole.summary)
    assert merged.summary.missing == whole.summary.missing
    assert merged.manifest["missing_predictions"] == whole.manifest["missing_predictions"]
    assert whole.summary.missing is not None
    assert [of.missing for of in whole.summary.missing.by_model] == [8, 13]
    by_id = [
        sorted(read_rows(folder), key=lambda row: (row["item_id"], row["tested_model"]))
        for folder in (tmp_path / "whole", tmp_path / "merged")
    ]
    assert by_id[0] == by_id[1]


def test_a_dry_run_expects_no_call_for_them(files: Files) -> None:
    path = files.predictions(*ROWS)
    counted = forecast(path, cases=files.cases, judge=SPEC, missing="count")
    alone = forecast(path, cases=files.cases, judge=SPEC)
    assert (counted.rows, counted.missing, counted.calls) == (10, 3, 7)
    assert (alone.rows, alone.missing, alone.calls) == (7, 0, 7)
    assert alone.missing_predictions is not None
    assert alone.missing_predictions.lines == [
        "alder: no prediction of 3 of 5 cases (c1, c2, c4): in no figure"
    ]
    assert "10: 7 to do, 0 finished, 0 bad, 3 without a prediction" in forecast_text(counted)


# Several judges -----------------------------------------------------------------------------------


def test_a_panel_has_them_once_and_its_judges_do_not_agree_on_them(
    files: Files, tmp_path: Path
) -> None:
    judges = [JudgeSpec(model="scripted/a"), JudgeSpec(model="scripted/b")]
    client = ScriptedClient(lambda request: RIGHT if request.model == "scripted/a" else WRONG)
    bad = {"id": "bad", "tested_model": "alder", "case_id": "c0"}
    run = files.grade([bad, *ROWS], judge=judges, client=client, out=tmp_path / "p", **COUNT)
    assert len(client.requests) == 14
    assert files.notes == ["alder: no prediction of 3 of 5 cases (c1, c2, c4): not correct"]
    found = [row for row in run.judgements if row.kind == "unscored"]
    assert {row.judge for row in found} == {"panel(scripted/a+scripted/b)"}
    assert sorted(row.detail for row in found if row.reason == "missing") == [
        f"{files.cases}:{line}: no prediction by alder" for line in (2, 3, 5)
    ]
    assert run.summary.totals.missing == 3
    assert run.ensemble is not None
    assert (run.ensemble.n_shared, run.ensemble.n_split) == (7, 7)  # type: ignore[union-attr]
    table = apbjudge.report(tmp_path / "p").tables[0]  # all rows are the panel's own
    assert [row.counts["Holistic"].rows for row in table.rows] == [5, 5]


def test_a_cascade_asks_nobody_about_them(files: Files, tmp_path: Path) -> None:
    cheap = JudgeSpec(model="scripted/cheap", samples=2)
    asked: list[str] = []

    def reply(request: Request) -> str:
        asked.append(request.model)
        return RIGHT if request.sample % 2 else WRONG

    bad = {"id": "bad", "tested_model": "alder", "case_id": "c0"}
    run = files.grade(
        [bad, *ROWS],
        judge=cheap,
        escalate="scripted/strong",
        client=ScriptedClient(reply),
        out=tmp_path / "c",
        **COUNT,
    )
    assert (asked.count("scripted/cheap"), asked.count("scripted/strong")) == (14, 7)
    assert run.summary.totals.unscored == {"bad_input": 1, "missing": 3}
    assert {row.judge for row in run.judgements} == {"cascade(scripted/cheap->scripted/strong)"}
    table = apbjudge.report(tmp_path / "c").tables[0]
    assert [row.counts["Holistic"].rows for row in table.rows] == [5, 5]


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
    alder, birch = report.tables[0].rows
    assert alder.cells["Holistic", "CR"].estimate.value == 0.4
    assert (alder.counts["Holistic"].rows, alder.counts["Holistic"].scored) == (5, 2)
    assert birch.cells["Holistic", "CR"].estimate.value == 1.0
    assert any("alder: no prediction of 3 of 5 cases" in note for note in report.tables[0].notes)
    report.write_page(tmp_path / "page.html")
    assert report.problems == []
    sources = sources_of(report.judges, report.config, [])
    entries = [*ReportItems(report.judges, sources, None, [])]
    (shown,) = (e.item for e in entries if (e.item_id, e.tested_model) == ("c2", "alder"))
    assert shown is not None
    assert (shown.query, shown.response) == ("Which trains go to Porto? (c2)", "")


# Hostile input ------------------------------------------------------------------------------------


def test_a_bad_case_among_the_missing_is_an_unusable_row(tmp_path: Path) -> None:
    files = Files(tmp_path, [case("c0"), case("c1", split="nonsense"), case("c2")])
    run = files.grade([prediction("c0")], **COUNT)
    assert [message.split(": ", 1)[0] for message in files.bad] == [f"{files.cases}:2"]
    assert "field split: expected one of" in files.bad[0]
    reasons = {row.item_id: getattr(row, "reason", None) for row in run.judgements}
    assert reasons == {"c0": None, None: "bad_input", "c2": "missing"}
    assert rates(run) == {"alder": (0.5, 2)}
    assert run.unscored_fraction == 1 / 2
    named = Files(tmp_path, [case("c0"), case("c1", split="nonsense")])
    named.grade([prediction("c0")])
    assert named.bad == []  # nobody reads it
    assert named.notes == ["alder: no prediction of 1 of 2 cases (c1): in no figure"]


def test_a_case_whose_id_another_prediction_has_is_an_unusable_row(tmp_path: Path) -> None:
    files = Files(tmp_path, [case("c0"), case("c1")])
    run = files.grade([prediction("c0", id="c1")], **COUNT)
    assert rates(run) == {"alder": (1.0, 1)}
    assert f"{files.cases}:2: field id: expected an id that occurs once" in files.bad[0]


def test_a_case_that_the_protocol_does_not_grade_is_an_unusable_row(tmp_path: Path) -> None:
    files = Files(tmp_path, [case("c0"), case("c1", planning_regime="Step-wise")])
    files.grade([prediction("c0")], protocol="holistic", **COUNT)
    assert "c" not in [g.tested_model for g in files.grade([prediction("c0")]).summary.groups]
    assert files.bad[0].startswith(f"{files.cases}:2: field planning_regime: expected a holistic")


def test_cases_of_one_id_are_refused(tmp_path: Path) -> None:
    files = Files(tmp_path, [case("c0"), case("c1"), case("c0")])
    with pytest.raises(InputError, match=r"cases.jsonl:3: field id: c0 occurs twice"):
        files.grade([prediction("c0")], **COUNT)


@pytest.mark.parametrize("name", ["", "a\n", None])
def test_a_case_whose_id_cannot_be_named_is_refused_with_the_reason(
    tmp_path: Path, name: str | None
) -> None:
    files = Files(tmp_path, [case("c0"), {**case("c1"), "id": name}])
    expected = r"cases.jsonl:2: field id: expected a non-empty string of printable characters, got "
    with pytest.raises(InputError, match=expected):
        files.grade([prediction("c0")])


def test_counting_needs_to_know_which_cases_there_are(files: Files, tmp_path: Path) -> None:
    with pytest.raises((OptionError, ValueError), match="--missing: expected --cases with it"):
        apbjudge.grade(files.predictions(*ROWS), missing="count")
    with pytest.raises(OptionError, match="--missing: expected nothing, since outcome grades runs"):
        apbjudge.grade([], protocol="outcome", cases=tmp_path, missing="count")


# Which case a prediction is of --------------------------------------------------------------------


def test_a_case_id_that_several_cases_share_does_not_hide_the_case(tmp_path: Path) -> None:
    shared = [case("x", case_id="x"), case("x-4", case_id="x"), case("y", case_id="z")]
    cases = Cases(write_rows(tmp_path / "c.jsonl", shared))
    for row, expected in (
        ({"id": "x", "case_id": "x"}, 0),
        ({"id": "x#2", "case_id": "x"}, 0),
        ({"id": "x-4", "case_id": "x"}, 1),
        ({"id": "x-4#3", "case_id": "x"}, 1),
        ({"id": "x-4", "case_id": "x-4"}, 1),
        ({"id": "y", "case_id": "z"}, 2),
        ({"id": "y#2", "case_id": "y"}, 2),
        ({"id": "y"}, 2),
        ({"id": "mine", "case_id": "x-4"}, 1),
        ({"id": "y", "case_id": "x"}, 0),  # a number of its own that happens to be a case's
    ):
        assert cases.index(row) == expected, row
    with pytest.raises(RowError, match="the id of a case"):
        cases.index({"id": "q#2", "case_id": "z"})
