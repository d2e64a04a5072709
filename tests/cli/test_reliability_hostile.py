"""``calibrate``, ``compare`` and ``plan-labels`` against unkind files and options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import Command

CODES = [f"E{i}" for i in range(1, 7)]


def judgement(at: int, **changed: Any) -> dict[str, Any]:
    is_correct = at % 3 > 0
    return {
        "item_id": f"item-{at}",
        "case_id": f"case-{at // 2}",
        "tested_model": "alder" if at % 2 else "birch",
        "protocol": "holistic",
        "rubric": "apb-holistic@1",
        "judge": "provider/judge",
        "kind": "verdict",
        "is_correct": is_correct,
        "grade": 1.0 if is_correct else 0.4,
        "errors": {code: code == "E2" and not is_correct for code in CODES},
        "category": None,
        "groups": {"dataset": "d"},
        "fingerprint": f"{at:032x}",
    } | changed


def label(at: int, **changed: Any) -> dict[str, Any]:
    return {"item_id": f"item-{at}", "rater": "ann", "is_correct": at % 4 > 0} | changed


def write(name: str, rows: list[dict[str, Any]]) -> Path:
    path = Path(name)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def run_of(n: int = 24, name: str = "run.jsonl", **changed: Any) -> Path:
    return write(name, [judgement(at, **changed) for at in range(n)])


def labels_of(n: int = 24) -> Path:
    return write("labels.jsonl", [label(at) for at in range(n)])


DAMAGE = [
    ("matches_reference", "yes"),
    ("matches_reference", 300),
    ("matches_reference", {}),
    ("groups", [1]),
    ("groups", "d"),
    ("doubt", [1]),
    ("doubt", {"entropy": [1]}),
    ("doubt", {"entropy": {"is_correct": "much"}}),
    ("doubt", {"entropy": {"is_correct": -5}}),
    ("doubt", {"entropy": {"is_correct": True}}),
    ("grade", True),
]


@pytest.mark.parametrize(("field", "value"), DAMAGE)
def test_a_damaged_field_costs_its_row_alone(apbjudge: Command, field: str, value: object) -> None:
    rows = [judgement(at) for at in range(24)]
    rows[3][field] = value
    run = write("run.jsonl", rows)
    for command in (("calibrate", run, labels_of()), ("plan-labels", run)):
        result = apbjudge(*command)
        assert result.code == 1
        assert result.err.startswith(f"run.jsonl:4: field {field}: expected ")
        assert len(result.err.splitlines()) == 1


def test_a_row_that_is_there_twice_counts_once(apbjudge: Command) -> None:
    rows = [judgement(at) for at in range(24)]
    run = write("run.jsonl", rows + [row | {"is_correct": True} for row in rows[:5]])
    result = apbjudge("calibrate", run, labels_of(), "--format", "json")
    assert result.code == 1
    assert "got 5 more, such as item-0 of birch: the first one counts" in result.err
    (judge,) = json.loads(result.out, parse_constant=pytest.fail)["judges"]
    assert (judge["n_rows"], judge["n_labelled"]) == (24, 24)
    agreed = sum((at % 3 > 0) == (at % 4 > 0) for at in range(24))
    assert judge["whole"]["measures"]["agreement"]["value"] == pytest.approx(agreed / 24)


def test_judgements_do_not_pass_for_labels(apbjudge: Command) -> None:
    run = run_of()
    result = apbjudge("calibrate", run, run)
    assert result.code == 2
    assert "run.jsonl:1: expected labels of humans, got a judge's judgement" in result.err


def test_labels_that_could_belong_to_several_models_are_named(apbjudge: Command) -> None:
    rows = [judgement(at, tested_model=name) for at in range(6) for name in ("alder", "birch")]
    result = apbjudge("calibrate", write("run.jsonl", rows), labels_of(6))
    assert result.code == 2
    assert "tested_model: expected the name of one, got none for 6 items" in result.err


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_another_encoding_is_named(apbjudge: Command, encoding: str) -> None:
    run, labels = run_of(), labels_of()
    for path in (labels, run):
        text = path.read_text(encoding="utf-8")
        path.write_text(text, encoding=encoding)
        result = apbjudge("calibrate", run, labels)
        path.write_text(text, encoding="utf-8")
        assert result.code == 2
        name = encoding.upper()
        assert result.err == (
            f"apbjudge: {path}: expected one JSON object a line in UTF-8, got {name} text: convert "
            f"it first (iconv -f {name} -t UTF-8 FILE)\n"
        )


def planned(apbjudge: Command) -> list[dict[str, Any]]:
    assert apbjudge("plan-labels", run_of(60), "--n", "24", "--out", "plan.jsonl").code == 0
    files = (Path("plan.jsonl"), Path("plan.strata.jsonl"))
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    return [json.loads(line) for line in text.splitlines()]


def labelled(rows: list[dict[str, Any]]) -> Path:
    result = [label(int(row["item_id"].removeprefix("item-"))) for row in rows]
    return write("labels.jsonl", result)


def test_rows_of_a_plan_that_were_passed_over_are_told(apbjudge: Command) -> None:
    rows = [row for row in planned(apbjudge) if row["order"]]
    stratum = [row for row in rows if row["stratum"] == rows[0]["stratum"]]
    result = apbjudge("calibrate", "run.jsonl", labelled(stratum[2:]), "--design", "plan.jsonl")
    assert result.code == 0
    assert "2 rows were skipped" in result.out
    bare = 60 - rows[0]["stratum_size"]
    assert f"{bare} of 60 rows are in strata without any label" in result.out


def test_labels_that_no_plan_chose_are_refused(apbjudge: Command) -> None:
    rows = [row for row in planned(apbjudge) if row["order"] is None]
    result = apbjudge("calibrate", "run.jsonl", labelled(rows), "--design", "plan.jsonl")
    assert result.code == 2
    assert f"got only labels of {len(rows)} others" in result.err
