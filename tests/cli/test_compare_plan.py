"""``compare`` and ``plan-labels`` as a user meets them; bootstrap intervals of all commands."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.reports.rows import unscored, verdict
from tests.support.judging import write_rows

from .conftest import Command, Outcome, example

GOLDEN = Path(__file__).parents[1] / "golden"
MODELS = ("alder", "birch")


def rows_of(judge: str, wrong: int) -> Iterator[dict[str, Any]]:
    """48 rows of 24 cases; every so-many-th is wrong, two are unscored."""
    for at in range(24):
        for model in MODELS:
            common = {"tested_model": model, "judge": judge}
            if (at, model) in {(3, "alder"), (9 + wrong, "birch")}:
                yield unscored(f"item-{at:02}", **common)
            elif (at + 2 * MODELS.index(model)) % wrong == 0:
                yield verdict(f"item-{at:02}", "E1 E5", **common)
            else:
                yield verdict(f"item-{at:02}", **common)


def labels() -> Iterator[dict[str, Any]]:
    for at in range(0, 24, 2):
        for model in MODELS:
            right = (at + MODELS.index(model)) % 4 != 0
            row = {"item_id": f"item-{at:02}", "tested_model": model, "is_correct": right}
            yield row | {"grade": 1.0 if right else 0.4, "errors": [] if right else ["E5"]}


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    for name, wrong in (("a", 3), ("b", 4)):
        (tmp_path / name).mkdir()
        write_rows(tmp_path / name / "judgements.jsonl", rows_of(f"judge-{name}", wrong))
    write_rows(tmp_path / "labels.jsonl", labels())


def is_golden(text: str, name: str) -> None:
    """UPDATE_GOLDEN=1 writes the texts anew; read the difference before it is committed."""
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def is_one_line(done: Outcome, text: str) -> None:
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("apbjudge: ")
    assert text in done.err


# compare ------------------------------------------------------------------------------------------


def test_two_judges_with_labels(apbjudge: Command) -> None:
    done = apbjudge("compare", "a", "b", "--labels", "labels.jsonl", "--primary", "CR, F1")
    assert (done.code, done.err) == (0, "")
    is_golden(done.out, "compare_judges")


def test_two_tested_models_of_one_run(apbjudge: Command) -> None:
    models = ("--tested-model", "alder", "--tested-model", "birch")
    done = apbjudge("compare", "a", "a/judgements.jsonl", *models, "--level", "0.9")
    assert (done.code, done.err) == (0, "")
    is_golden(done.out, "compare_models")


def test_damaged_rows_are_named_and_make_it_exit_code_1(apbjudge: Command, tmp_path: Path) -> None:
    with (tmp_path / "a" / "judgements.jsonl").open("a") as file:
        file.write('{"item_id": "x\x1b", "kind": 3}\nno json\n')
    for arguments in (("compare", "a", "b"), ("plan-labels", "a")):
        done = apbjudge(*arguments)
        assert done.code == 1
        assert done.err.count("\n") == 2
        assert done.err.startswith("a/judgements.jsonl:49: field ")
        assert done.out


DAMAGE = [
    ("matches_reference", "yes"),
    ("groups", [1]),
    ("uncertainty", {"entropy": [1]}),
    ("uncertainty", {"entropy": {"is_correct": -5}}),
]


@pytest.mark.parametrize(("field", "value"), DAMAGE)
def test_a_damaged_field_costs_its_row_alone(
    apbjudge: Command, tmp_path: Path, field: str, value: object
) -> None:
    rows = [*rows_of("judge-a", 3)]
    rows[3][field] = value
    write_rows(tmp_path / "a" / "judgements.jsonl", rows)
    for arguments in (("calibrate", "a", "labels.jsonl"), ("plan-labels", "a")):
        done = apbjudge(*arguments)
        assert (done.code, done.err.count("\n")) == (1, 1)
        assert done.err.startswith(f"a/judgements.jsonl:4: field {field}")


def test_unusable_requests_of_a_comparison_get_one_line(apbjudge: Command) -> None:
    is_one_line(apbjudge("compare", "a", "a"), "RUN_B: expected another run than a; ")
    is_one_line(apbjudge("compare", "a", "b", "--primary", "CR,F9"), "got 'F9'")
    is_one_line(apbjudge("compare", "a", "b", "--cluster", "colour"), "--cluster: expected some of")
    is_one_line(
        apbjudge("compare", "a", "b", "--adjudicator", "eve", "--labels", "labels.jsonl"),
        "expected labels by eve, got human",
    )

    judgements = "a/judgements.jsonl"
    text = f"{judgements}:1: expected labels of humans, got a judge's judgement"
    is_one_line(apbjudge("calibrate", "a", judgements), text)


# plan-labels --------------------------------------------------------------------------------------


def test_a_first_plan(apbjudge: Command) -> None:
    done = apbjudge("plan-labels", "a", "--n", "20", "--out", "plan.jsonl")
    assert (done.code, done.err) == (0, "")
    is_golden(done.out, "plan_first")


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


def label_all(rows: list[dict[str, Any]]) -> None:
    names = ("item_id", "tested_model")
    right = ({name: row[name] for name in names} | {"is_correct": True} for row in rows)
    write_rows(Path("done.jsonl"), right)


def test_labels_by_a_plan_correct_a_run(apbjudge: Command) -> None:
    """From the plan through its labels, only begun, to corrected figures."""
    assert apbjudge("plan-labels", "a", "--n", "40", "--out", "plan.jsonl").code == 0
    begun = [row for row in read("plan.jsonl") if row["order"] and row["order"] <= 30]
    label_all(begun)
    done = apbjudge("calibrate", "a", "done.jsonl", "--design", "plan.jsonl", "--format", "json")
    assert (done.code, done.err) == (0, "")
    corrected = next(
        figure
        for figure in json.loads(done.out)["judges"][0]["corrected"]
        if figure["figure"] == "CR" and not figure["field"]
    )
    assert corrected["result"]["design"] == "stratified"
    assert corrected["result"]["rectified"]["value"] == pytest.approx(1.0)
    again = ("--labels", "done.jsonl", "--already-random", "--n", "8", "--out", "plan-2.jsonl")
    assert apbjudge("plan-labels", "a", *again).code == 0
    second = read("plan-2.strata.jsonl")
    known = {(row["item_id"], row["tested_model"]) for row in begun}
    assert {(r["item_id"], r["tested_model"]) for r in second if r["order"] == 0} == known


def test_rows_of_a_plan_that_were_passed_over_are_told_and_others_refused(
    apbjudge: Command,
) -> None:
    assert apbjudge("plan-labels", "a", "--n", "20", "--out", "plan.jsonl").code == 0
    rows = [row for row in read("plan.jsonl") if row["order"]]
    stratum = Counter(row["stratum"] for row in rows).most_common(1)[0][0]
    of_stratum = [row for row in rows if row["stratum"] == stratum]
    label_all(of_stratum[2:])
    command = ("calibrate", "a", "done.jsonl", "--design", "plan.jsonl")
    done = apbjudge(*command)
    assert done.code == 0
    assert "2 rows were skipped" in done.out
    assert (
        f"{48 - of_stratum[0]['stratum_size']} of 48 rows are in strata without any label"
        in done.out
    )
    label_all([row for row in read("plan.strata.jsonl") if row["order"] is None])
    is_one_line(apbjudge(*command), "got only labels of ")


def test_unusable_requests_of_a_plan_get_one_line(apbjudge: Command) -> None:
    is_one_line(apbjudge("plan-labels", "a", "--n", "3"), "--n: expected at least 10, so that")
    is_one_line(apbjudge("plan-labels", "a", "--out", "labels.jsonl"), "--out: expected a new file")


# bootstrap intervals by option --------------------------------------------------------------------

ASKED = ("--interval", "percentile", "--n-resamples", 300)
OF_OTHER_METHODS = {"corrected", "stand_in"}
"""Rates corrected for a judge's errors, and the test of the alternative annotator."""
COMMANDS: dict[str, tuple[object, ...]] = {
    "calibrate": ("calibrate", "a", "labels.jsonl", "--by", "tested_model"),
    "compare": ("compare", "a", "b", "--labels", "labels.jsonl"),
    "report": ("report", "a", "b", "--labels", "labels.jsonl"),
}


def estimates(value: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Everything with an interval in nested JSON, by where it is."""
    if isinstance(value, dict):
        if {"low", "method", "value"} <= {*value}:
            yield path, value
        for name, part in value.items():
            yield from () if name in OF_OTHER_METHODS else estimates(part, f"{path}/{name}")
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from estimates(part, f"{path}/{i}")


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.slow
def test_every_figure_of_a_command_is_resampled(apbjudge: Command, name: str) -> None:
    def made(seed: int) -> str:
        result = apbjudge(*COMMANDS[name], *ASKED, "--seed", seed, "--format", "json")
        assert result.code in {0, 1}, result.err
        return result.out

    out = made(42)
    found = [(at, of) for at, of in estimates(json.loads(out)) if of["low"] is not None]
    assert len(found) > 20
    for at, of in found:
        shown = (of["method"], of["n_resamples"], of["seed"])
        assert shown == ("percentile", 300, 42), (at, of)
        assert of["low"] <= of["value"] <= of["high"], at
    assert (made(42), made(43) == out) == (out, False)
    text = apbjudge(*COMMANDS[name], *ASKED, "--seed", 42).out
    assert "intervals: percentile bootstrap over cases, 300 resamples, seed 42" in text
    assert "of 100 simulated 95 % intervals held the true value" in " ".join(text.split())
    usual = apbjudge(*COMMANDS[name]).out
    assert "bootstrap" not in usual


def test_a_bootstrap_of_0_or_100_percent_has_no_width_and_wilson_s_limits_beside(
    apbjudge: Command,
) -> None:
    result = apbjudge("grade", example("holistic"), *ASKED, "--out", "run")
    assert "100.0 [100.0, 100.0; Wilson 70.1, 100.0]" in result.out
    assert "0.0 [0.0, 0.0; Wilson 0.0, 29.9]" in result.out
