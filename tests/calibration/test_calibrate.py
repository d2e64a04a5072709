"""Judgements and labels on disk become calibrations: who is matched, and what is said of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import apbjudge
from apbjudge.calibration.results import HAND_PICKED, Reliability
from apbjudge.errors import InputError
from apbjudge.statistics import Sample, rectify, rogan_gladen
from tests.support.judging import write_rows
from tests.support.texts import text_of

CODES = [f"E{i}" for i in range(1, 7)]


def judgement(item: str, said: bool | None, **more: Any) -> dict[str, Any]:
    """A row of judgements.jsonl; None is an unscored one."""
    verdict = said is not None
    flags = {code: code == "E4" and said is False for code in CODES}
    row = {"item_id": item, "case_id": item, "tested_model": "planner", "protocol": "holistic"}
    row |= {"rubric": "apb-holistic@1", "judge": "openai/umpire", "groups": {"dataset": "d"}}
    said_of = {
        "kind": "verdict" if verdict else "unscored",
        "is_correct": said,
        "grade": None if said is None else (1.0 if said else 0.6),
        "errors": flags if verdict else None,
        "category": None,
        "matches_reference": None,
    }
    return {**row, **said_of, **more}


def label(item: str, said: bool | None, **more: Any) -> dict[str, Any]:
    flags = None if said is None else {code: code == "E4" and not said for code in CODES}
    row = {"item_id": item, "tested_model": "planner", "rater": "kim", "is_correct": said}
    grade = None if said is None else (1.0 if said else 0.6)
    return {**row, "grade": grade, "errors": flags, **more}


def calibrated(
    folder: Path,
    judgements: Iterable[Mapping[str, Any]],
    labels: Iterable[Mapping[str, Any]],
    **options: Any,
) -> Reliability:
    run = write_rows(folder / "judgements.jsonl", judgements)
    report = apbjudge.calibrate(run, write_rows(folder / "labels.jsonl", labels), **options)
    json.dumps(report.to_json(), allow_nan=False)
    assert text_of(report)
    (judge,) = report.judges
    return judge


TRUTH = [True, False, True, True, False, False, True, False, True, False]
SAID = [True, True, True, False, False, False, True, False, True, False]
IDS = [f"i{n}" for n in range(10)]
JUDGED = [judgement(item, said) for item, said in zip(IDS, SAID, strict=True)]
LABELS = [label(item, said) for item, said in zip(IDS, TRUTH, strict=True)]


def test_figures_are_over_the_labelled_rows(tmp_path: Path) -> None:
    more = [judgement(f"x{n}", True) for n in range(5)]
    result = calibrated(tmp_path, [*JUDGED, *more], LABELS)
    assert (result.n_rows, result.n_scored, result.n_labelled) == (15, 15, 10)
    assert result.judge == "openai/umpire"
    measures = result.whole.measures
    assert measures["agreement"].value == 0.8
    assert (measures["precision"].value, measures["precision"].n_items) == (0.8, 5)
    assert measures["grade MAE"].value == pytest.approx(0.08)
    assert result.whole.codes["E4"]["F1"].value == 0.8
    assert result.whole.tables["is_correct"].counts == ((4.0, 1.0), (1.0, 4.0))


def test_labels_of_other_items_are_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="such as i0 of planner, got only others, such as z"):
        calibrated(tmp_path, JUDGED, [label("z", True)])


def test_unscored_rows_count_as_asked(tmp_path: Path) -> None:
    rows = [judgement(row["item_id"], None) if n in (1, 4) else row for n, row in enumerate(JUDGED)]
    for policy, expected in {"exclude": (7 / 8, 8), "wrong": (0.7, 10)}.items():
        whole = calibrated(tmp_path, rows, LABELS, unscored=policy).whole
        assert (whole.n_scored, whole.n_items) == (8, 10)
        estimate = whole.measures["agreement"]
        assert (estimate.value, estimate.n_items) == expected


def test_rows_of_one_case_are_one_cluster_unless_told_otherwise(tmp_path: Path) -> None:
    shared = [{**row, "case_id": f"c{n // 2}"} for n, row in enumerate(JUDGED)]
    result = calibrated(tmp_path, shared, LABELS)
    assert (result.cluster, result.n_clusters) == ("case_id", 5)
    assert result.whole.measures["agreement"].method == "wilson-effective"
    alone = calibrated(tmp_path, shared, LABELS, cluster="none")
    assert (alone.n_clusters, alone.whole.measures["agreement"].method) == (10, "wilson-modified")


def test_raters_may_have_a_column_each(tmp_path: Path) -> None:
    """The labels are those of a row per item and rater; an empty cell is none."""
    lee = [not said if n < 3 else said for n, said in enumerate(TRUTH)]
    each = {"kim": TRUTH, "lee": [*lee[:9], None]}
    beside = [
        {"item_id": item} | {name: of[n] for name, of in each.items()} for n, item in enumerate(IDS)
    ]
    apart = [
        {"item_id": item, "rater": rater, "is_correct": said}
        for rater, values in each.items()
        for item, said in zip(IDS, values, strict=True)
        if said is not None
    ]
    expected = calibrated(tmp_path, JUDGED, apart)
    result = calibrated(tmp_path, JUDGED, beside, raters=["kim", "lee"])
    assert (result.raters, result.n_ties) == (expected.raters, expected.n_ties)
    assert result.whole == expected.whole
    assert result.between == expected.between
    adjudicated = calibrated(tmp_path, JUDGED, beside, raters=["kim", "lee"], adjudicator="kim")
    assert adjudicated.whole.measures["agreement"].value == 0.8
    with pytest.raises(InputError, match=r"say nothing; their fields are item_id, kim, lee \("):
        calibrated(tmp_path, JUDGED, beside)
    with pytest.raises(InputError, match=r"--raters: expected one of the columns .*, got 'bo'"):
        calibrated(tmp_path, JUDGED, beside, raters=["kim", "bo"])
    rows = [{**row, "who": "x"} for row in beside]
    with pytest.raises(InputError, match="--raters: expected no column for rater too, got 'who'"):
        calibrated(tmp_path, JUDGED, rows, raters=["kim"], label_columns=["rater=who"])
    with pytest.raises(InputError, match=r"first complaint: .*:1: kim: field is_correct"):
        calibrated(tmp_path, JUDGED, [{"item_id": "i0", "kim": "good"}], raters=["kim"])


def test_columns_of_labels_may_have_our_names_in_part(tmp_path: Path) -> None:
    theirs = [{"item_id": i, "ok": said} for i, said in zip(IDS, TRUTH, strict=True)]
    result = calibrated(tmp_path, JUDGED, theirs, label_columns=["verdict=ok"])
    assert result.whole.measures["agreement"].value == 0.8


def test_an_adjudicator_decides_and_ties_are_stated(tmp_path: Path) -> None:
    second = [{**row, "rater": "lee"} for row in LABELS]
    second[0] = label("i0", False, rater="lee")
    split = calibrated(tmp_path, JUDGED, [*LABELS, *second])
    assert split.n_ties == {"is_correct": 1, "E4": 1}
    assert split.whole.measures["agreement"].n_items == 9
    assert split.raters == ("kim", "lee")
    assert split.between is not None
    assert split.between.together["agreement"].value == 0.9
    assert split.stand_in is not None
    final = [*LABELS, *second, label("i0", True, rater="boss")]
    decided = calibrated(tmp_path, JUDGED, final, adjudicator="boss")
    assert (decided.n_ties, decided.n_adjudicated) == ({}, 1)
    assert decided.whole.measures["agreement"].n_items == 10
    assert decided.raters == ("kim", "lee")
    with pytest.raises(InputError, match="expected labels by nobody, got boss, kim, lee"):
        calibrated(tmp_path, JUDGED, final, adjudicator="nobody")


def test_hand_picked_labels_describe_and_infer_nothing(tmp_path: Path) -> None:
    result = calibrated(tmp_path, JUDGED, LABELS, design="hand-picked")
    assert HAND_PICKED in result.notes
    estimates = [*result.whole.measures.values()]
    estimates += [e for of in result.whole.codes.values() for e in of.values()]
    assert all(e.low is e.high is None for e in estimates)
    assert result.whole.measures["agreement"].value == 0.8
    assert result.corrected == ()
    assert result.stand_in is result.diversity is result.self_evaluation is None


def many(n: int, seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Judgements whose judge is right four times in five, and the labels of all."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < 0.6
    said = np.where(rng.random(n) < 0.8, truth, ~truth)
    ids = [f"i{at:04}" for at in range(n)]
    rows = [judgement(item, bool(x)) for item, x in zip(ids, said, strict=True)]
    return rows, [label(item, bool(x)) for item, x in zip(ids, truth, strict=True)]


def test_a_random_part_of_labels_corrects_the_rates(tmp_path: Path) -> None:
    rows, labels = many(400, 1)
    result = calibrated(tmp_path, rows, labels[:100], design="random")
    figures = {part.figure: part.result for part in result.corrected}
    assert list(figures) == ["CR", "Grade", *CODES]
    judged = np.array([float(row["is_correct"]) for row in rows])
    known = np.array([float(row["is_correct"]) for row in labels])
    known[100:] = np.nan
    expected = rectify(judged, known, design="random")
    assert figures["CR"].rectified == expected.rectified
    assert figures["CR"].raw.value == judged.mean()
    assert (figures["CR"].n_labelled, figures["CR"].n_judged) == (100, 400)


def test_labels_of_another_population_correct_another_run(tmp_path: Path) -> None:
    rows, labels = many(200, 2)
    theirs, _ = many(300, 3)
    target = write_rows(tmp_path / "target.jsonl", theirs)
    result = calibrated(tmp_path, rows, labels, design="other-population", target=target)
    rate = next(part.result for part in result.corrected if part.figure == "CR")
    said = np.array([row["is_correct"] for row in rows])
    truth = np.array([row["is_correct"] for row in labels])
    positive = {"tp": int((said & truth).sum()), "n_pos": int(truth.sum())}
    negative = {"tn": int((~said & ~truth).sum()), "n_neg": int((~truth).sum())}
    n_correct = sum(row["is_correct"] for row in theirs)
    expected = rogan_gladen(n_correct, 300, **positive, **negative)
    assert rate.rectified.value == pytest.approx(expected.value)
    assert rate.rectified.low == pytest.approx(expected.low)


def plan(path: Path, rows: list[dict[str, Any]], chosen: set[str]) -> Path:
    """All rows in two strata by verdict, some of them chosen."""
    entries: list[dict[str, Any]] = []
    for row in rows:
        order = len(entries) + 1 if row["item_id"] in chosen else None
        ids = {name: row[name] for name in ("item_id", "tested_model", "case_id")}
        entries.append({**ids, "stratum": f"{row['is_correct']}", "order": order})
    return write_rows(path, entries)


def test_a_drawn_plan_gives_weights_and_corrects_by_stratum(tmp_path: Path) -> None:
    """Ties take no weight from their stratum."""
    rows, labels = many(400, 4)
    said = np.array([row["is_correct"] for row in rows])
    truth = np.array([row["is_correct"] for row in labels])
    right, wrong = np.flatnonzero(said)[:20], np.flatnonzero(~said)[:60]
    path = plan(tmp_path / "plan.jsonl", rows, {f"i{at:04}" for at in (*right, *wrong)})
    given = [labels[at] for at in (*right, *wrong, 399)]
    ties = [label(f"i{at:04}", not truth[at], rater="lee") for at in right[:10]]
    result = calibrated(tmp_path, rows, [*given, *ties], design=str(path))
    assert result.n_labelled == 80
    assert any("1 labelled rows that the plan did not choose" in note for note in result.notes)
    weighted = np.mean(said) * truth[right[10:]].mean() + np.mean(~said) * (~truth[wrong]).mean()
    assert result.whole.measures["agreement"].value == pytest.approx(weighted)
    known = np.full(400, np.nan)
    known[[*right[10:], *wrong]] = truth[[*right[10:], *wrong]]
    sample = Sample(strata=said.astype(int))
    expected = rectify(said.astype(float), known, design="stratified", sample=sample)
    rate = next(part.result for part in result.corrected if part.figure == "CR")
    assert rate.rectified.value == pytest.approx(expected.rectified.value)


def test_a_plan_of_another_run_is_refused(tmp_path: Path) -> None:
    path = plan(tmp_path / "plan.jsonl", JUDGED[:5], {"i0"})
    with pytest.raises(InputError, match="got one without 5 of its rows, such as i5 of planner"):
        calibrated(tmp_path, JUDGED, LABELS, design=str(path))


def test_the_judge_is_found_among_the_tested_models_whatever_the_spelling(tmp_path: Path) -> None:
    rows, labels = many(40, 5)
    for at, row in enumerate(rows):
        row["tested_model"] = labels[at]["tested_model"] = "Um-Pire" if at % 2 else "planner"
    result = calibrated(tmp_path, rows, labels).self_evaluation
    assert result is not None
    assert result.own == "Um-Pire"
    assert result.rate is not None
    assert {model.tested_model for model in result.models} == {"Um-Pire", "planner"}
    other = calibrated(tmp_path, rows, labels, own="planner").self_evaluation
    assert other is not None
    assert other.rate.estimate.value == pytest.approx(-result.rate.estimate.value)


# Scales of grades --------------------------------------------------------------------------------

ON_THIRDS = [(0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (2, 3), (3, 3), (3, 3), (3, 1), (0, 2)]
"""Grades by judge and humans on 0 to 3."""


def graded(folder: Path, judge: list[float], human: list[float], **more: Any) -> Reliability:
    rows = [judgement(f"i{n}", g == 1, grade=g, **more) for n, g in enumerate(judge)]
    labels = [label(f"i{n}", g == 1, grade=g) for n, g in enumerate(human)]
    return calibrated(folder, rows, labels, cluster="none")


def ac2(pairs: list[tuple[int, int]], k: int) -> float:
    """Gwet's AC2 with quadratic weights, from its definition, item by item."""
    weights = 1 - (np.subtract.outer(np.arange(k), np.arange(k)) / (k - 1)) ** 2
    shares = np.bincount(np.ravel(pairs), minlength=k) / (2 * len(pairs))
    expected = weights.sum() / (k * (k - 1)) * np.sum(shares * (1 - shares))
    observed = np.mean([weights[a, b] for a, b in pairs])
    return float((observed - expected) / (1 - expected))


@pytest.mark.parametrize("rubric", ["apb-holistic@1", "theirs"])
def test_grades_on_another_scale_have_its_levels_alone(tmp_path: Path, rubric: str) -> None:
    judge, human = ([pair[i] / 3 for pair in ON_THIRDS] for i in (0, 1))
    result = graded(tmp_path, judge, human, rubric=rubric)
    assert len(result.whole.tables["grade"].first) == 4
    value = result.whole.measures["grade AC2 (quadratic)"].value
    assert value == pytest.approx(ac2(ON_THIRDS, 4), abs=1e-12)
    assert any("scale of 4 levels: 0, 0.333333, 0.666667, 1" in note for note in result.notes)


def test_a_grade_is_the_same_with_more_or_fewer_decimals(tmp_path: Path) -> None:
    steps = [step for step, _ in ON_THIRDS]
    written = [(0.0, 0.33, 0.667, 1.0)[step] for step in steps]
    result = graded(tmp_path, [step / 3 for step in steps], written)
    measures = result.whole.measures
    for name in ("grade alpha (ordinal)", "grade AC2 (quadratic)", "grade kappa (quadratic)"):
        assert measures[name].value == 1
    assert measures["grade MAE"].value == measures["grade bias"].value == 0
    assert any("such as 0.33 as 0.333333" in note for note in result.notes)


def test_the_scale_of_the_run_s_own_rubric_wins(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"grades": [1.0, 0.75, 0.5, 0.25, 0.0]}))
    pairs = [(0, 4), (4, 4), (2, 2), (2, 0), (4, 2)]
    judge, human = ([pair[i] / 4 for pair in pairs] for i in (0, 1))
    result = graded(tmp_path, judge, human, rubric="mine@1")
    value = result.whole.measures["grade AC2 (quadratic)"].value
    assert value == pytest.approx(ac2(pairs, 5), abs=1e-12)


def test_doubted_labels_are_never_silently_counted_or_left_out(tmp_path: Path) -> None:
    labels = [row | ({"unsure": True} if n < 3 else {}) for n, row in enumerate(LABELS)]
    counted = calibrated(tmp_path, JUDGED, labels)
    assert counted.n_labelled == 10
    assert any(
        note.startswith("3 labels are marked unsure and count like") for note in counted.notes
    )
    sure = calibrated(tmp_path, JUDGED, labels, unsure="exclude")
    assert sure.n_labelled == 7
    assert "3 labels are marked unsure and are left out (--unsure exclude)." in sure.notes
    with pytest.raises(InputError, match="expected labels that their raters are sure of, got none"):
        calibrated(tmp_path, JUDGED, labels[:3], unsure="exclude")
    assert not any("unsure" in note for note in calibrated(tmp_path, JUDGED, LABELS).notes)


def test_agreement_on_the_first_faulty_step_is_stated(tmp_path: Path) -> None:
    marks = [label("i1", said=False, rater=rater, faulty_steps=[2]) for rater in ("kim", "ada")]
    result = calibrated(tmp_path, JUDGED, [*LABELS, *marks])
    assert any("1 pairs of labels" in note and "1 agree on the" in note for note in result.notes)
