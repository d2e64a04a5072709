"""Judgements of other tools against labels: columns, scales, preferences, groups."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import krippendorff
import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import (
    accuracy_score,
    cohen_kappa_score,
    f1_score,
    precision_recall_fscore_support,
    precision_score,
    recall_score,
)

import apbjudge
from apbjudge.calibration.results import Reliability
from apbjudge.errors import InputError, OptionError
from apbjudge.statistics import Estimate

EXAMPLES = Path(__file__).parents[2] / "examples"
PAIRWISE = EXAMPLES / "labels" / "pairwise.csv"


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        if path.suffix == ".jsonl":
            file.writelines(json.dumps(row) + "\n" for row in rows)
        else:
            table = csv.DictWriter(file, list(rows[0]))
            table.writeheader()
            table.writerows(rows)
    return path


def values(measures: Mapping[str, Estimate]) -> dict[str, float | None]:
    return {name: of.value for name, of in measures.items()}


def only(report: apbjudge.ReliabilityReport) -> Reliability:
    (judge,) = report.judges
    return judge


rng = np.random.default_rng(7)
N = 60
HUMAN = {
    "passed": rng.integers(0, 2, N),
    "stars": rng.integers(1, 6, N),
    "share": rng.random(N).round(2),
    "topic": rng.integers(0, 3, N),
}
TOPICS = np.array(["refund", "exchange", "other"])
OFF = rng.random(N) < 0.3
JUDGE = {
    "passed": np.where(OFF, 1 - HUMAN["passed"], HUMAN["passed"]),
    "stars": np.clip(HUMAN["stars"] + rng.integers(-1, 2, N), 1, 5),
    "share": np.clip(HUMAN["share"] + rng.normal(0, 0.1, N), 0, 1).round(2),
    "topic": np.where(OFF, (HUMAN["topic"] + 1) % 3, HUMAN["topic"]),
}


def rows_of(of: Mapping[str, np.ndarray], **more: Sequence[Any]) -> list[dict[str, Any]]:
    columns = {
        "id": [f"t{i}" for i in range(N)],
        "passed": np.where(of["passed"], "pass", "fail").tolist(),
        **{name: of[name].tolist() for name in ("stars", "share")},
        "topic": TOPICS[of["topic"]].tolist(),
        **more,
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    judged = write(tmp_path / "judged.csv", rows_of(JUDGE))
    return judged, write(tmp_path / "labels.jsonl", rows_of(HUMAN))


# Scales -------------------------------------------------------------------------------------------


def test_verdicts_are_found_and_measured_as_scikit_learn_does(files: tuple[Path, Path]) -> None:
    judge = only(apbjudge.calibrate(*files))
    y, z = HUMAN["passed"], JUDGE["passed"]
    expected = {
        "agreement": accuracy_score(y, z),
        "precision": precision_score(y, z),
        "recall": recall_score(y, z),
        "F1": f1_score(y, z),
        "kappa": cohen_kappa_score(y, z),
    }
    result = values(judge.whole.measures)
    assert {name: result[name] for name in expected} == pytest.approx(expected)
    assert not any("grade" in name or "Err" in name for name in result)
    assert "id as item, passed as verdict (yes/no)" in judge.notes[0]
    assert "Not read: stars" in judge.notes[1]


def test_whole_numbers_keep_their_unit_and_have_ordinal_measures(files: tuple[Path, Path]) -> None:
    judge = only(apbjudge.calibrate(*files, score="stars", scale="1..5"))
    y, z = HUMAN["stars"], JUDGE["stars"]
    alpha = krippendorff.alpha(np.stack([y, z]), level_of_measurement="ordinal")
    expected = {
        "score agreement": np.mean(y == z),
        "score MAE": np.abs(z - y).mean(),
        "score bias": (z - y).mean(),
        "score kappa (quadratic)": cohen_kappa_score(y, z, weights="quadratic"),
        "score alpha (ordinal)": alpha,
        "Spearman": stats.spearmanr(y, z)[0],
    }
    result = values(judge.whole.measures)
    assert {name: result[name] for name in expected} == pytest.approx(expected)
    assert judge.whole.tables["score"].second == ("1", "2", "3", "4", "5")
    assert "agreement" not in result  # no verdict is read where another column is named


def test_numbers_have_interval_measures(files: tuple[Path, Path]) -> None:
    judge = only(apbjudge.calibrate(*files, score="share", verdict="passed", scale="0..1"))
    y, z = HUMAN["share"], JUDGE["share"]
    alpha = krippendorff.alpha(np.stack([y, z]), level_of_measurement="interval")
    expected = {
        "score MAE": np.abs(z - y).mean(),
        "Pearson": stats.pearsonr(y, z)[0],
        "score alpha (interval)": alpha,
        "agreement": accuracy_score(HUMAN["passed"], JUDGE["passed"]),
    }
    result = values(judge.whole.measures)
    assert {name: result[name] for name in expected} == pytest.approx(expected)
    assert "score kappa (quadratic)" not in result


def test_classes(files: tuple[Path, Path]) -> None:
    judge = only(apbjudge.calibrate(*files, class_column="topic", scale="refund,exchange,other"))
    y, z = HUMAN["topic"], JUDGE["topic"]
    p, r, f, _ = precision_recall_fscore_support(y, z, labels=range(3))
    result = values(judge.whole.measures)
    assert result["macro F1"] == pytest.approx(f.mean())
    assert result["kappa"] == pytest.approx(cohen_kappa_score(y, z))
    for i, name in enumerate(TOPICS):
        single = values(judge.whole.codes[name])
        got = [single[measure] for measure in ("precision", "recall", "F1")]
        assert got == pytest.approx([p[i], r[i], f[i]])


def test_rates_are_corrected_in_units_of_the_scale(files: tuple[Path, Path]) -> None:
    options = {"score": "stars", "verdict": "passed", "scale": "1..5", "design": "random"}
    judge = only(apbjudge.calibrate(*files, **options))
    figures = {of.figure: of.result for of in judge.corrected}
    assert figures.keys() == {"CR", "Score"}
    assert figures["Score"].raw.value == pytest.approx(JUDGE["stars"].mean())
    assert figures["Score"].rectified.value == pytest.approx(HUMAN["stars"].mean())
    picked = only(apbjudge.calibrate(*files, **{**options, "design": "hand-picked"}))
    assert {of.low for of in picked.whole.measures.values()} == {None}


# Raters and judges --------------------------------------------------------------------------------


def test_several_raters_and_judges_in_columns_of_one_file(tmp_path: Path) -> None:
    rows = [
        {"id": i, "ann": h, "ben": h, "cleo": 1 + h % 5, "strict": max(1, h - 1), "same": h}
        for i, h in enumerate(HUMAN["stars"].tolist())
    ]
    path = write(tmp_path / "all.csv", rows)
    given: Any = {"raters": "ann,ben,cleo", "judges": "strict,same", "scale": "1..5"}
    strict, same = apbjudge.calibrate(path, path, **given).judges
    assert (strict.judge, same.judge) == ("strict", "same")
    assert same.whole.measures["score MAE"].value == 0
    assert same.raters == ("ann", "ben", "cleo")
    assert same.between is not None
    assert same.between.pairs[0].measures["score MAE"].value == 0
    assert same.stand_in is not None


def test_judges_by_a_column_and_tested_models(tmp_path: Path) -> None:
    judged = [
        {"id": i, "model": model, "judge": judge, "passed": judge == "kind" or i < 5}
        for i in range(10)
        for model in "ab"
        for judge in ("kind", "fair")
    ]
    human = [{"id": i, "model": model, "passed": i < 5} for i in range(10) for model in "ab"]
    report = apbjudge.calibrate(
        write(tmp_path / "j.jsonl", judged), write(tmp_path / "l.jsonl", human), by="model"
    )
    rates = {of.judge: of.whole.measures["agreement"].value for of in report.judges}
    assert rates == {"kind": 0.5, "fair": 1.0}
    sizes = [(group.value, group.result.n_items) for group in report.judges[0].groups]
    assert sizes == [("a", 10), ("b", 10)]
    assert report.judges[0].n_clusters == 10  # rows of one item are not independent


# Bad input ----------------------------------------------------------------------------------------


def test_a_value_off_the_scale_is_refused_with_its_line(tmp_path: Path) -> None:
    judged, human = ([{"id": i, "score": 1 + i % 5} for i in range(20)] for _ in range(2))
    judged[3]["score"], human[7]["score"] = 6, 2.5  # type: ignore[assignment]
    files = write(tmp_path / "j.csv", judged), write(tmp_path / "l.csv", human)
    report = apbjudge.calibrate(*files, scale="1..5")
    assert report.problems == (
        f"{files[0]}:5: field score: expected a whole number from 1 to 5, got '6'",
        f"{files[1]}:9: field score: expected a whole number from 1 to 5, got '2.5'",
    )
    judge = only(report)
    assert (judge.n_rows, judge.n_scored, judge.n_labelled) == (20, 19, 19)
    wrong = only(apbjudge.calibrate(*files, scale="1..5", unscored="wrong"))
    assert judge.whole.measures["score MAE"].value == 0
    assert wrong.whole.measures["score MAE"].value == pytest.approx(3 / 19)  # as far off as can be


def test_a_column_on_another_scale_is_refused_whole(files: tuple[Path, Path]) -> None:
    with pytest.raises(InputError, match=r"judged\.\w+:\d: field share: expected .*of 60 values"):
        apbjudge.calibrate(*files, score="share", scale="1..5")


@pytest.mark.parametrize(
    ("judged", "human", "options", "text"),
    [
        ("id,passed,correct", "id,passed", {}, "it may be passed or correct; name it with --verd"),
        ("id,passed", "id,fine", {}, "verdict, named with --label-columns verdict=COLUMN; the"),
        ("id,passed", "id,passed", {"target": "x", "design": "other-population"}, "--design: exp"),
    ],
)
def test_unusable_columns_and_options_are_named(
    tmp_path: Path, judged: str, human: str, options: dict[str, str], text: str
) -> None:
    for name, head in (("j", judged), ("l", human)):
        cells = [[str(i), *("1" for _ in head.split(",")[1:])] for i in range(3)]
        lines = [head, *map(",".join, cells)]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises((InputError, OptionError)) as refused:
        apbjudge.calibrate(tmp_path / "j.csv", tmp_path / "l.csv", **options)  # type: ignore[arg-type]
    assert text in str(refused.value)


def test_raters_without_a_name_are_not_taken_for_one(tmp_path: Path) -> None:
    judged = write(tmp_path / "j.csv", [{"id": 1, "passed": 1}, {"id": 2, "passed": 0}])
    human = write(tmp_path / "l.csv", [{"id": 1, "passed": 1}, {"id": 1, "passed": 0}])
    with pytest.raises(InputError, match=r"got 1 more, such as of 1; name the columns"):
        apbjudge.calibrate(judged, human)


# Own columns --------------------------------------------------------------------------------------


def test_parts_and_clusters_by_any_column_of_judgements_or_labels(tmp_path: Path) -> None:
    judged = rows_of(JUDGE, team=["a", "b"] * 30)
    meta = [{**row, "meta": {"session": i // 4}} for i, row in enumerate(judged)]
    human = rows_of(HUMAN, region=["n", "n", "s"] * 20)
    files = write(tmp_path / "j.jsonl", meta), write(tmp_path / "l.csv", human)
    judge = only(apbjudge.calibrate(*files, by="team,region", cluster="session"))
    sizes = [(group.field, group.value, group.result.n_items) for group in judge.groups]
    assert sizes == [("team", "a", 30), ("team", "b", 30), ("region", "n", 40), ("region", "s", 20)]
    assert judge.n_clusters == 15
    assert judge.whole.measures["agreement"].method == "wilson-effective"


def test_parts_of_a_run_by_a_field_of_its_predictions_or_labels(tmp_path: Path) -> None:
    text = (EXAMPLES / "holistic.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    rows = [{**row, "metadata": {"team": "ab"[i % 2]}} for i, row in enumerate(rows)]
    plans = write(tmp_path / "plans.jsonl", rows)
    apbjudge.grade(plans, out=tmp_path / "run")
    labels = EXAMPLES / "labels" / "holistic_raters.csv"
    judge = only(apbjudge.calibrate(tmp_path / "run", labels, by="team,task_family"))
    n_items = {(group.field, group.value): group.result.n_items for group in judge.groups}
    assert n_items["team", "a"] + n_items["team", "b"] == judge.n_labelled
    assert n_items["task_family", "Logistics"] == 6
    with pytest.raises(OptionError, match="--by: expected some of"):
        apbjudge.calibrate(tmp_path / "run", labels, by="squad")


# Preferences --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "unscored"), [("careful", "exclude"), ("hasty", "wrong")])
def test_preferences_are_measured_as_scikit_learn_does(name: str, unscored: str) -> None:
    with PAIRWISE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    known = {"first": 0, "second": 1, "tie": 2, "draw": 2}
    human = np.array([[known[row[who]] for who in ("ann", "ben", "cleo")] for row in rows])
    counts = np.stack([(human == at).sum(axis=1) for at in range(3)], axis=1)
    decided = counts.max(axis=1) > 1
    said = np.array([known.get(row[name], 3) for row in rows])
    counted = decided & ((said < 3) | (unscored == "wrong"))
    y, z = counts.argmax(axis=1)[counted], said[counted]
    given: Any = {"judges": name, "raters": "ann,ben,cleo", "scale": "first,second,tie|draw"}
    report = apbjudge.calibrate(PAIRWISE, PAIRWISE, pairwise=True, unscored=unscored, **given)
    judge = only(report)
    p, r, f, _ = precision_recall_fscore_support(
        y, z, labels=range(3), average="macro", zero_division=0
    )
    expected = accuracy_score(y, z), p, r, f, cohen_kappa_score(y, z)
    names = ("agreement", "macro precision", "macro recall", "macro F1", "kappa")
    result = values(judge.whole.measures)
    assert [result[of] for of in names] == pytest.approx(list(expected))
    assert judge.n_ties == {"class": 1}
    off = [text for text in report.problems if f"field {name}: expected one of first" in text]
    odd = [row[name] for row in rows if row[name] and row[name] not in known]
    assert len(off) == len(report.problems) == len(odd)  # an empty cell is no fault


def pairs(*rows: tuple[str, str, str, str]) -> list[dict[str, str]]:
    return [
        dict(zip(("item_id", "model_a", "model_b", "winner"), row, strict=True)) for row in rows
    ]


def test_pairs_in_both_orders_show_position_bias_and_win_rates(tmp_path: Path) -> None:
    judged = pairs(
        ("1", "x", "y", "A"), ("1", "y", "x", "A"),  # always the first shown
        ("2", "x", "y", "A"), ("2", "y", "x", "B"),  # always x
        ("3", "x", "y", "tie"), ("3", "y", "x", "tie"),
    )  # fmt: skip
    human = pairs(("1", "x", "y", "x"), ("2", "y", "x", "B"), ("3", "x", "y", "draw"))
    files = write(tmp_path / "j.csv", judged), write(tmp_path / "l.csv", human)
    judge = only(apbjudge.calibrate(*files, pairwise=True))
    assert judge.whole.measures["agreement"].value == pytest.approx(5 / 6)
    assert [(group.field, group.value) for group in judge.groups] == [("pair", "x vs y")]
    result = judge.preferences
    assert result is not None
    position = values(result.position)
    assert position == pytest.approx({"judge": 3 / 4, "human": 2 / 4, "same in both orders": 2 / 3})
    rates = {of.system: (of.judge.value, of.human.value) for of in result.wins}
    assert rates["x"] == pytest.approx(((1 + 0 + 1 + 1 + 0.5 + 0.5) / 6, (4 + 1) / 6))
    assert rates["x"][0] + rates["y"][0] == pytest.approx(1)  # type: ignore[operator]
    assert judge.n_clusters == 3
