"""A run as Python users hold it: shown, read again, and taken wherever a path to a run is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pandas
import pytest

import apbjudge
from apbjudge import Run
from apbjudge.runs import loop
from tests.support.judging import MODEL, plan_row
from tests.support.server import Hang

EXAMPLES = Path(__file__).parents[2] / "examples"
ROWS = EXAMPLES / "holistic.jsonl"
LABELS = EXAMPLES / "labels" / "holistic.jsonl"


@pytest.fixture(scope="module", params=["in memory", "in a folder"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    is_stored = request.param == "in a folder"
    out = tmp_path_factory.mktemp("runs") / "run" if is_stored else None
    return apbjudge.grade(ROWS, out=out)


def test_its_text_is_five_lines_at_most(run: Run) -> None:
    lines = repr(run).split("\n")
    assert len(lines) <= 5
    assert lines[0] == "Run of static: 27 of 27 rows scored"
    assert len(run.judgements) == len(list(run.judgements)) == 27
    assert lines[1] == "  holistic, alder-large: no provable fault ≤ 1.000 [0.701, 1.000] /9"
    assert lines[-1].strip() == str(run.folder or "in memory")


def test_a_notebook_shows_the_summary(run: Run) -> None:
    html = run._repr_html_()
    assert html.count("<tr") == 4
    assert "no provable fault" in html
    assert "≤ 77.8 [45.3, 96.1]" in html


def test_it_is_taken_wherever_a_path_to_a_run_is(run: Run) -> None:
    assert len(apbjudge.frame(run)) == len(apbjudge.frame([run])) == 27
    (judge,) = apbjudge.calibrate([run], LABELS).judges
    assert judge.n_labelled == 27
    assert apbjudge.report(run).tables
    other = apbjudge.grade(ROWS, judge=lambda item: {"is_correct": True})
    assert apbjudge.compare(run, other).n_pairs == 27
    plan = apbjudge.plan_labels(apbjudge.LabelPlanConfig(judgements=run, n=10))  # type: ignore[arg-type]
    assert plan.n_planned == 10


def test_results_are_frames(run: Run) -> None:
    summary = run.summary.to_frame()
    one = summary.query("tested_model == 'cress-small' and metric == 'no provable fault'")
    assert one["value"].tolist() == [pytest.approx(1 / 3)]
    assert one["bound"].tolist() == ["upper"]
    calibration = apbjudge.calibrate(run, LABELS, by=["tested_model"])
    frame = calibration.to_frame()
    f1 = frame.query("metric == 'F1' and by.isna() and code.isna()")
    assert f1["value"].tolist() == [calibration.judges[0].whole.measures["F1"].value]
    assert set(frame["by_value"].dropna()) == {"alder-large", "birch-medium", "cress-small"}
    tables = apbjudge.report(run, tables=["overall"]).to_frame()
    assert set(tables["table"]) == {"overall"}
    compared = apbjudge.compare(run, apbjudge.grade(ROWS, judge=lambda item: {"is_correct": True}))
    rates = compared.to_frame().query("metric == 'CR'").set_index("of")["value"]
    assert rates["first"] - rates["second"] == pytest.approx(rates["difference"])


def test_grading_goes_on_beside_a_running_loop() -> None:
    async def notebook() -> list[Run]:
        blocking = apbjudge.grade(ROWS)
        waiting = await asyncio.gather(apbjudge.agrade(ROWS), apbjudge.agrade(ROWS, by=["stage"]))
        return [blocking, *waiting]

    assert [run.summary.scored for run in asyncio.run(notebook())] == [27, 27, 27]


def test_frames_go_to_parquet(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    frame = run.summary.to_frame()
    frame.to_parquet(tmp_path / "figures.parquet")
    pandas.testing.assert_frame_equal(pandas.read_parquet(tmp_path / "figures.parquet"), frame)
    apbjudge.frame(run).to_parquet(tmp_path / "judgements.parquet")


def test_progress_is_reported_while_no_row_is_finished(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "BEAT_S", 0.0)
    server, reports = serve(lambda seen: Hang()), list[int]()

    def progress(of: loop.Progress) -> None:
        reports.append(of.done)
        if server.requests and reports.count(0) > 2:
            server.let_go.set()

    judge = apbjudge.JudgeSpec(model=MODEL, api_base=server.address, retries=0, timeout_s=30)
    events = loop.Events(progress=progress, bad_row=reports.append)
    run = apbjudge.grade([plan_row("amber")], judge=judge, events=events)
    assert server.let_go.is_set()
    assert run.progress.fraction == 1.0
