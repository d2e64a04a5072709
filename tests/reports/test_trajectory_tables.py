"""Tables, figures and comparisons of whole trajectories, from finished runs."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import apbjudge
from apbjudge.errors import InputError, OptionError
from apbjudge.judge.summary import summarize
from apbjudge.reports.paper.formatting import tables_markdown
from apbjudge.reports.report import report as open_report
from apbjudge.statistics.estimates import Estimate
from apbjudge.statistics.proportions import counted
from apbjudge.trajectories.planbench.diagnosis import OTHER_ENDINGS, WRONG_VALUES
from tests.support.runs import write_judged
from tests.support.texts import text_of

FAILED = {"Irrecoverable Drift": 110, "Format Error": 21, "No Traction": 12, "Weak Recovery": 9}


def published() -> list[dict[str, Any]]:
    """Those with the shares printed for one model (arXiv:2606.22388, table 3 and figure 6)."""
    right = [{"is_correct": True, "measures": {"turns": 20}, "steps": "5"}] * 164
    of = {"is_correct": False, "measures": {"turns": 26}, "steps": "6"}
    wrong = [[of | {"classes": {"failure": name}}] * count for name, count in FAILED.items()]
    return [*right, *chain(*wrong)]


def cells(table: Any, row: int = 0) -> dict[str, Estimate]:
    return {key: cell.estimate for (_, key), cell in [*table.lines][row].cells.items()}


def test_published_shares_follow_from_counts(tmp_path: Path) -> None:
    runs = [write_judged(tmp_path / name, name, published()) for name in ("default", "mixed")]
    tables = open_report(runs).tables
    assert "PlanBench-XL (Table 3; --table planbench)" in tables_markdown(tables)
    main, steps, failures = tables[:3]
    assert [row.heads for row in main.lines] == [("alder", "default"), ("alder", "mixed")]
    assert cells(main)["Accuracy"].value == pytest.approx(0.5190, abs=5e-5)  # 164 of 316
    assert (cells(main)["Accuracy"].low, cells(main)["Accuracy"].high) == pytest.approx(
        (0.4640, 0.5736), abs=5e-4
    )
    assert cells(main)["turns"].value == pytest.approx((164 * 20 + 152 * 26) / 316)
    shares = cells(failures)
    assert shares["Irrecoverable Drift"].value == pytest.approx(0.724, abs=5e-4)
    assert shares["Format Error"].value == pytest.approx(0.138, abs=5e-4)
    assert shares["Stalled"].value == 0  # no trajectory is of the class, and the class is stated
    assert {e.n_items for e in shares.values()} == {152}
    assert [row.heads[2] for row in steps.lines] == ["5", "6"] * 2


@pytest.mark.parametrize("judge", ["code", "deputy"])
def test_endings_are_the_papers_classes_and_others(judge: str, tmp_path: Path) -> None:
    classes = ["Surrender"] * (judge != "code") + ["Search exhaustion", *WRONG_VALUES]
    classes += OTHER_ENDINGS
    rows = [
        {"is_correct": False, "classes": {"failure": "No Traction", "termination": name}}
        for name in classes
    ]
    rows += [{"is_correct": False, "classes": {"failure": "Format Error"}}, {"is_correct": True}]
    run = write_judged(tmp_path / "run", "default", rows, judge=judge)
    settings = {"identity": {"judge": {"model": judge}}, "settings": {"model": judge}}
    (run / "manifest.json").write_text(json.dumps({**settings, "state": "done"}))
    (table,) = open_report(run, tables="planbench-endings").tables
    (line,) = table.lines
    assert line.heads == ("alder", "default", "Wrong tool value")
    shares = cells(table)
    n = len(classes)
    assert {shares[f"ended {name}"].n_items for name in classes} == {n} == {9 + (judge != "code")}
    assert ("ended Surrender" in shares) is (judge != "code")  # nobody has read the answers
    counts = {name: round(n * (of.value or 0)) for name, of in shares.items()}
    of_paper = ("Search exhaustion", "Wrong tool value", "otherwise")
    assert [counts[f"ended {name}"] for name in of_paper] == [1, 5, 3]
    assert sum(counts[f"ended {name}"] for name in of_paper) + (judge != "code") == n
    assert sum(counts[f"ended {name}"] for name in (*WRONG_VALUES, *OTHER_ENDINGS)) == 8


def test_searches_per_call_are_shown_of_solved_and_failed_trajectories(tmp_path: Path) -> None:
    """Two failed ones with 10 searches per call and 20 per 4; one never called."""

    def row(searches: int, calls: int, ending: str) -> dict[str, Any]:
        own = {"searches per call": searches / calls} if calls else {}
        counts = {"searches": searches, "calls": calls, "no calls": not calls}
        classes = {"termination": ending} if ending else {}
        return {"is_correct": not ending, "measures": counts | own, "classes": classes}

    rows = [row(10, 1, "Unfinished"), row(20, 4, "Search exhaustion"), row(6, 3, "")]
    run = write_judged(tmp_path / "run", "default", rows)
    (table,) = open_report(run, tables="planbench-outcomes").tables
    assert [line.heads[2] for line in table.lines] == ["failed", "solved"]
    failed, solved = cells(table), cells(table, 1)
    assert [failed[name].value for name in ("S/C, mean", "S/C")] == [7.5, 6.0]
    assert [solved[name].value for name in ("S/C, mean", "S/C", "without calls")] == [2.0, 2.0, 0]
    lines = (run / "judgements.jsonl").read_text().splitlines()
    summary = summarize(map(json.loads, lines), judge="code", by=("outcome", "ending"))
    parts = {tuple(group.by.items()): group for group in summary.groups if group.by}
    assert {key: group.n for key, group in parts.items()} == {
        (("outcome", "solved"),): 1,
        (("outcome", "failed"),): 2,
        (("ending", "Search exhaustion"),): 1,
        (("ending", "Unfinished"),): 1,
        (("ending", None),): 1,
    }
    assert parts[(("outcome", "failed"),)].metrics["S/C"].value == 6.0


def test_intervals_are_those_of_table_5_if_asked_for(tmp_path: Path) -> None:
    """Half widths of k of 327, and a ratio of totals as it is resampled here by its definition."""
    searches, calls = (np.arange(327) % by + least for by, least in ((5, 3), (3, 1)))
    totals = np.stack([searches, calls], axis=1).tolist()

    def table_of(k: int, name: str) -> Any:
        rows = [
            {"is_correct": i < k, "measures": {"searches": s, "calls": c}}
            for i, (s, c) in enumerate(totals)
        ]
        run = write_judged(tmp_path / name, "default", rows)
        options: Any = {"interval": "percentile", "n_resamples": 10_000, "bootstrap_seed": 42}
        (table,) = open_report(run, tables="planbench", **options).tables
        return table

    for k, radius in {0: 0.0, 3: 1.07, 62: 4.28, 252: 4.59, 327: 0.0}.items():
        table = table_of(k, str(k))
        of = cells(table)["Accuracy"]
        assert 50 * ((of.high or 0) - (of.low or 0)) == pytest.approx(radius, abs=0.2)
        assert (of.method, of.n_resamples, of.seed) == ("percentile", 10_000, 42)
        wilson = counted(k, 327)
        limits = f"wilson: {wilson.low:.4g} to {wilson.high:.4g}"
        assert any(limits in note for note in table.notes) is (k in (0, 327))
        assert cells(table_of(k, f"{k} again")) == cells(table)
    drawn = np.random.default_rng(1).integers(0, 327, (10_000, 327))
    ratio = cells(table_of(1, "ratio"))["S/C"]
    ratios = searches[drawn].sum(axis=1) / calls[drawn].sum(axis=1)
    assert (ratio.low, ratio.high) == pytest.approx(np.quantile(ratios, [0.025, 0.975]), abs=0.02)


def test_long_paths_are_one_group(tmp_path: Path) -> None:
    """Figure 5 has 145, 106, 59 and 17 queries, those with 8 and 9 steps together."""
    counts = {"5": 145, "6": 106, "7": 59, "8": 15, "9": 2}
    rows = [
        {"is_correct": True, "steps": steps, "measures": {"turns": 9}}
        for steps, n in counts.items()
        for _ in range(n)
    ]
    rows += [{"is_correct": True, "steps": "10"}]
    run = write_judged(tmp_path / "run", "default", rows)
    for group, expected in {
        None: [145, 106, 59, 15, 2, 1],
        "8+": [145, 106, 59, 18],
        "10+": [145, 106, 59, 15, 2, 1],
    }.items():
        (table,) = open_report(run, tables="planbench-steps", group_steps=group).tables
        assert [line.counts[""].rows for line in table.lines] == expected
        assert [line.heads[2] for line in table.lines][-1] == (group or "10")
    with pytest.raises(OptionError, match="--group-steps"):
        open_report(run, group_steps="many")


@pytest.mark.parametrize("n", [2, 3, 5])
def test_correlations_are_over_tested_models(n: int, tmp_path: Path) -> None:
    runs: list[Path] = []
    for model in range(n):
        measures = {"EDT": 10 + model, "calls": 4, "invalid calls": (model * 3) % 5 % 4}
        rows = [{"is_correct": i <= model, "measures": measures} for i in range(10)]
        runs.append(write_judged(tmp_path / str(model), "mixed", rows, tested_model=f"m{model}"))
    results = open_report(runs, tables="planbench-correlations")
    if n < 3:
        with pytest.raises(OptionError, match=r"whole trajectories, .* of 3 tested models"):
            _ = results.tables
        return
    (table,) = results.tables
    assert [row.heads for row in table.lines] == [("EDT", "mixed"), ("ITCR", "mixed")]
    assert {row.counts[""].scored for row in table.lines} == {n}
    assert cells(table)["Pearson"].value == pytest.approx(1)
    spearman = cells(table, 1)["Spearman"]  # ranks of 0, 3, 1, 0, 2 for five models
    assert spearman.value == pytest.approx(0.15390 if n == 5 else 0.5, abs=1e-4)
    assert (spearman.low is None) is (n < 4)


def test_settings_are_compared_query_by_query(tmp_path: Path) -> None:
    def run(setting: str, each: int, turns: int, searches: int, more: int) -> Path:
        rows = [
            {
                "is_correct": i % each == 0,
                "measures": {"turns": turns + i % 7, "searches": searches, "calls": 4 + i % more},
            }
            for i in range(100)
        ]
        return write_judged(tmp_path / setting, setting, rows)

    one, other = run("default", 2, 20, 6, 1), run("mixed", 4, 25, 9, 2)
    compared = apbjudge.compare(one, other)
    found = {difference.name: difference for difference in compared.differences}
    assert compared.differing == ("setting",)
    assert found["Accuracy"].difference.value == pytest.approx(0.25)
    assert found["turns"].difference.value == pytest.approx(-5)
    assert found["turns"].difference.note == "the items show no spread"  # each differs by 5
    assert found["S/C"].difference.value == pytest.approx(6 / 4 - 900 / 450)
    assert (found["S/C"].p_value or 1) < 1e-6
    assert "setting mixed" in text_of(compared)
    for margin, passes in {0.5: True, 0.1: False}.items():
        (gate,) = apbjudge.compare(one, other, primary=("Accuracy",)).gate(margin=margin)
        assert gate.passed is passes


@pytest.mark.parametrize("diagnosis", [{"measures": {"turns": "many"}}, "turns"])
def test_damaged_diagnoses_cost_their_row_alone(diagnosis: Any, tmp_path: Path) -> None:
    run = write_judged(tmp_path / "run", "default", published())
    lines = (run / "judgements.jsonl").read_text().splitlines()
    damaged = write_judged(tmp_path / "bad", "default", [published()[0]], diagnosis=diagnosis)
    bad = (damaged / "judgements.jsonl").read_text()
    (run / "judgements.jsonl").write_text("\n".join([bad.strip(), *lines[1:]]) + "\n")
    report = open_report(run)
    assert next(report.tables[0].lines).counts[""].rows == 315
    assert any("judgements.jsonl:1: field diagnosis" in p for p in report.problems)
    with pytest.raises(InputError, match="field diagnosis"):
        _ = open_report(damaged).tables
