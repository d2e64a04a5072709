"""What an audit is made from: rows, labels, another judge's verdicts, and what is said of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from apbjudge.audits.config import AuditConfig
from apbjudge.audits.material import gather, known_of
from apbjudge.audits.perturbations.bases import SAME_ID, SOLVER
from apbjudge.audits.session import Prepared, audit, prepare
from apbjudge.errors import InputError
from apbjudge.judge import ItemSource, JudgeSpec, JudgeTask
from apbjudge.judge.grade import grade
from tests.support.auditing import EXAMPLES
from tests.support.judging import plan_row, write_rows

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, *rows: Any) -> Path:
        return write_rows(tmp_path / name, rows)

    return write


def prepared(
    rows: Path, *, note: Callable[[str], None] = lambda message: None, **changes: Any
) -> Prepared:
    order = AuditConfig(**{"rows": rows, "bases": 2, "seed_of_draw": 1, **changes})
    return prepare(JudgeSpec(), order, note=note)


def label(item: str, is_correct: Any = True, **more: Any) -> dict[str, Any]:
    return {"item_id": item, "rater": "r1", "is_correct": is_correct, **more}


def bases(found: Prepared) -> list[tuple[str, str, str]]:
    return [(base.name, base.origin, base.item.tested_model) for base in found.material.bases]


def predictions(found: Prepared) -> dict[str, bool | None]:
    return {v.name: v.truth.is_correct for v in found.material.predictions}


# rows ---------------------------------------------------------------------------------------------


def test_bad_rows_are_named_and_counted_and_the_good_ones_are_used(write: Write) -> None:
    said: list[str] = []
    rows = write("rows.jsonl", plan_row("a"), [], plan_row("b"), plan_row("b"), 7)
    labels = write("labels.jsonl", label("other"))
    result = prepared(rows, note=said.append, labels=labels)
    assert [line.split(": ")[0] for line in said] == [f"{rows}:{n}" for n in (2, 4, 5)]
    assert (result.material.n_rows, result.material.bad_rows) == (5, 3)
    assert sorted(bases(result)) == [("a", "reference", SOLVER), ("b", "reference", SOLVER)]
    notes = audit("static", result).card.notes
    assert "3 of 5 rows could not be used" in notes
    assert any("no label belongs to any of the rows" in note for note in notes)


def test_without_a_readable_row_that_is_said(write: Write) -> None:
    with pytest.raises(InputError, match="no readable row"):
        prepared(write("rows.jsonl", 7, []))
    with pytest.raises(InputError, match="holds no rows"):
        prepared(write("none.jsonl"))


def test_cases_that_share_an_id_do_not_share_a_base(write: Write) -> None:
    twins = [plan_row("x", case_id=f"c{n}", tested_model=f"m{n}") for n in range(2)]
    result = prepared(write("rows.jsonl", *twins))
    assert bases(result) == [("x", "reference", SOLVER)]
    assert dict(result.material.left_out) == {SAME_ID: 1}
    labels = write("labels.jsonl", *(label("x", tested_model=f"m{n}") for n in range(2)))
    both = prepared(write("rows.jsonl", *twins), labels=labels)
    assert sorted(bases(both)) == [("x@m0", "label", "m0"), ("x@m1", "label", "m1")]


# labels -------------------------------------------------------------------------------------------


def test_a_passed_prediction_is_a_base_and_every_labelled_one_is_judged(write: Write) -> None:
    models = ("good", "bad", "unknown")
    rows = write("rows.jsonl", *(plan_row("a", tested_model=model) for model in models))
    labels = write(
        "labels.jsonl",
        label("a", tested_model="good", grade=1.0, errors=[]),
        label("a", False, tested_model="bad", grade=0.4, errors=["E4"]),
    )
    result = prepared(rows, labels=labels)
    assert bases(result) == [("a@good", "label", "good")]
    assert predictions(result) == {"a@good/as-it-came": True, "a@bad/as-it-came": False}
    truth = {v.name: v.truth for v in result.material.predictions}["a@bad/as-it-came"]
    assert (truth.codes, truth.grade) == ({"E4"}, 0.4)
    assert result.known.baseline == "human labels"
    assert result.material.n_known == 2
    main = result.design.runs[0].variants
    assert {v.name for v in main if v.role == "prediction"} == set(predictions(result))


def test_a_label_that_names_no_tested_model_counts_for_a_lone_answer(write: Write) -> None:
    two = [plan_row("two", tested_model=model) for model in ("m1", "m2")]
    rows = write("rows.jsonl", plan_row("alone"), *two)
    labels = write("labels.jsonl", label("alone"), label("two"))
    result = prepared(rows, labels=labels)
    assert predictions(result) == {"alone@planner/as-it-came": True}
    assert {name: origin for name, origin, _ in bases(result)} == {
        "alone@planner": "label",
        "two": "reference",
    }


def test_the_adjudicators_word_is_final(write: Write) -> None:
    rows = write("rows.jsonl", plan_row("a"))
    votes = [label("a", False, rater=f"r{n}") for n in range(3)] + [label("a", rater="chief")]
    labels = write("labels.jsonl", *votes)
    name = "a@planner/as-it-came"
    assert predictions(prepared(rows, labels=labels)) == {name: False}
    assert predictions(prepared(rows, labels=labels, adjudicator="chief")) == {name: True}


def test_as_many_predictions_as_wanted_whole_cases_at_a_time() -> None:
    labels = EXAMPLES / "labels" / "holistic.jsonl"
    source = ItemSource(EXAMPLES / "holistic.jsonl")
    known = known_of(labels, None)
    result = gather(
        source, known, n_bases=1, n_predictions=4, seed=1, note=lambda message: None
    ).predictions
    cases: Sequence[str] = [variant.case_id for variant in result]
    rows = [entry.item for entry in source if isinstance(entry, JudgeTask)]
    whole = [item for item in rows if item.case_id in set(cases)]
    assert len(result) == len(whole) >= 4


# another judge as baseline ------------------------------------------------------------------------


def test_another_judges_run_is_the_baseline_and_makes_no_base(tmp_path: Path) -> None:
    rows = write_rows(
        tmp_path / "rows.jsonl",
        [plan_row("a"), plan_row("b", model_response="nothing", format_demanded=True)],
    )
    grade(rows, out=tmp_path / "run")
    result = prepared(rows, labels=tmp_path / "run")
    assert result.known.baseline == "judge static as baseline"
    assert not result.known.are_labels
    assert {origin for _, origin, _ in bases(result)} == {"reference"}
    assert predictions(result) == {"a@planner/as-it-came": True, "b@planner/as-it-came": False}
    assert all("judge static" in variant.what for variant in result.material.predictions)


def test_the_card_says_which_baseline_it_used_and_who_is_the_judge_itself() -> None:
    rows, labels = EXAMPLES / "holistic.jsonl", EXAMPLES / "labels" / "holistic.jsonl"
    card = audit("static", prepared(rows, bases=1, labels=labels, own=["cress-small"])).card
    (probe,) = (probe for probe in card.probes if probe.name == "preference")
    assert "truth of predictions: human labels" in probe.notes
    relations = {row[0]: row[1] for row in probe.tables[0].rows}
    assert relations == {"alder-large": "other", "birch-medium": "other", "cress-small": "own"}


# protocol, rubric, shipped cases ------------------------------------------------------------------


def test_the_shipped_cases_serve_where_there_are_no_rows() -> None:
    material = prepare(JudgeSpec(), AuditConfig(bases=1)).material
    assert material.name == "the cases shipped with apbjudge"
    assert (material.leaks.outcome, material.bad_rows) == ("could not tell", 0)
    assert material.predictions == ()


BARE = {"tool_chain": None, "plan": None}


def test_known_plans_come_before_predictions_of_which_nothing_is_known(write: Write) -> None:
    rows = [plan_row(f"bare{n}", **BARE) for n in range(4)]
    result = prepared(write("rows.jsonl", *rows, plan_row("z")), bases=3)
    origins = [base.origin for base in result.material.bases]
    assert origins == ["reference", "prediction", "prediction"]
