"""What an audit is made from: rows, labels, another judge's verdicts, and what is said of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from apbjudge.audits.config import AuditConfig
from apbjudge.audits.material import NOTHING_KNOWN, gather, known_of, shipped
from apbjudge.audits.outcomes import Probe
from apbjudge.audits.perturbations.bases import PROVEN, SAME_ID, SOLVER
from apbjudge.audits.session import Prepared, audit, prepare
from apbjudge.errors import InputError, OptionError
from apbjudge.judge import JudgeSpec, Source, Task
from apbjudge.judge.grade import grade
from tests.support.auditing import EXAMPLES, SHORT
from tests.support.judging import plan_row, write_rows

Row = Mapping[str, Any]
Write = Callable[..., Path]
BARE = {"tool_chain": None, "plan": None}
NO_CITY = [{"name": "find_train", "parameter_description": {}}]
"""Takes the reference out of a row."""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, *rows: Row | str) -> Path:
        lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
        path = tmp_path / name
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return path

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
    rows = write("rows.jsonl", plan_row("a"), '{"id": ', plan_row("b"), plan_row("b"), "7")
    result = prepared(rows, note=said.append)
    assert [line.split(": ")[0] for line in said] == [f"{rows}:{n}" for n in (2, 4, 5)]
    assert (result.material.n_rows, result.material.bad_rows) == (5, 3)
    assert sorted(bases(result)) == [("a", "reference", SOLVER), ("b", "reference", SOLVER)]
    card = audit("static", result).card
    assert "3 of 5 rows could not be used" in card.notes


def test_without_a_sound_plan_the_predictions_are_used_as_they_came(write: Write) -> None:
    rows = write("rows.jsonl", *(plan_row(name, tool_chain=NO_CITY) for name in "ab"))
    material = prepared(rows).material
    assert (material.bases, dict(material.left_out)) == ((), {PROVEN: 2})
    assert sorted(variant.case_id for variant in material.predictions) == ["a", "b"]


def test_without_a_readable_row_that_is_said(write: Write) -> None:
    with pytest.raises(InputError, match="no readable row"):
        prepared(write("rows.jsonl", "7", "[]"))
    with pytest.raises(InputError, match="holds no rows"):
        prepared(write("none.jsonl"))
    with pytest.raises(InputError, match="can't be read"):
        prepared(Path("no such file"))


def test_cases_that_share_an_id_do_not_share_a_base(write: Write) -> None:
    twins = [plan_row("x", case_id=f"c{n}", tested_model=f"m{n}") for n in range(2)]
    result = prepared(write("rows.jsonl", *twins))
    assert bases(result) == [("x", "reference", SOLVER)]
    assert dict(result.material.left_out) == {SAME_ID: 1}
    labels = write("labels.jsonl", *(label("x", tested_model=f"m{n}") for n in range(2)))
    both = prepared(write("rows.jsonl", *twins), labels=labels)
    assert sorted(bases(both)) == [("x@m0", "label", "m0"), ("x@m1", "label", "m1")]


def test_cases_left_out_are_counted_on_the_card(write: Write) -> None:
    result = prepared(write("rows.jsonl", plan_row("a"), plan_row("b", tool_chain=NO_CITY)))
    assert dict(result.material.left_out) == {PROVEN: 1}
    assert audit("static", result).card.left_out == {PROVEN: 1}


def test_known_plans_come_before_predictions_of_which_nothing_is_known(write: Write) -> None:
    rows = [plan_row(f"bare{n}", **BARE) for n in range(4)]
    result = prepared(write("rows.jsonl", *rows, plan_row("z")), bases=3)
    origins = [base.origin for base in result.material.bases]
    assert origins == ["reference", "prediction", "prediction"]


def test_the_cases_are_drawn_by_the_seed_alone() -> None:
    drawn = [bases(prepared(SHORT, seed_of_draw=seed)) for seed in (1, 1, 2, 3)]
    assert drawn[0] == drawn[1]
    assert len({tuple(one) for one in drawn}) > 1


def test_cases_may_stand_in_a_file_of_their_own(write: Write) -> None:
    case = plan_row("a")
    prediction = {key: case.pop(key) for key in ("tested_model", "model_response")}
    rows = write("rows.jsonl", {"id": "a", **prediction})
    cases = write("cases.jsonl", case)
    assert bases(prepared(rows, cases=cases)) == [("a", "reference", SOLVER)]


def test_the_rows_of_a_case_may_lie_far_apart(write: Write) -> None:
    rows = [plan_row("a", tested_model=f"m{n}") for n in range(3)]
    between = [plan_row(f"b{n}") for n in range(3)]
    mixed = [row for pair in zip(rows, between, strict=True) for row in pair]
    labels = write("labels.jsonl", *(label("a", tested_model=f"m{n}") for n in range(3)))
    result = prepared(write("rows.jsonl", *mixed), labels=labels)
    assert len(predictions(result)) == 3
    assert result.material.n_known == 3


def test_pictures_are_looked_for_beside_the_rows_or_the_cases(write: Write, tmp_path: Path) -> None:
    rows = write("rows.jsonl", plan_row("a"))
    assert prepared(rows).material.roots == (tmp_path,)


# labels -------------------------------------------------------------------------------------------


def test_a_passed_prediction_is_a_base_and_every_labelled_one_is_judged(write: Write) -> None:
    rows = write(
        "rows.jsonl",
        plan_row("a", tested_model="good"),
        plan_row("a", tested_model="bad"),
        plan_row("a", tested_model="unknown"),
    )
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
    main = result.design.arms[0].variants
    assert {v.name for v in main if v.role == "prediction"} == set(predictions(result))


def test_a_label_that_names_no_tested_model_counts_for_a_lone_answer(write: Write) -> None:
    rows = write(
        "rows.jsonl",
        plan_row("alone"),
        plan_row("two", tested_model="m1"),
        plan_row("two", tested_model="m2"),
    )
    labels = write("labels.jsonl", label("alone"), label("two"))
    result = prepared(rows, labels=labels)
    assert predictions(result) == {"alone@planner/as-it-came": True}
    assert {name: origin for name, origin, _ in bases(result)} == {
        "alone@planner": "label",
        "two": "reference",
    }


def test_a_label_without_a_verdict_makes_nothing(write: Write) -> None:
    rows = write("rows.jsonl", plan_row("a"))
    labels = write("labels.jsonl", label("a", None, grade=0.4))
    result = prepared(rows, labels=labels)
    assert predictions(result) == {}
    assert bases(result) == [("a", "reference", SOLVER)]


def test_the_adjudicators_word_is_final(write: Write) -> None:
    rows = write("rows.jsonl", plan_row("a"))
    votes = [label("a", False, rater=f"r{n}") for n in range(3)] + [label("a", rater="chief")]
    labels = write("labels.jsonl", *votes)
    name = "a@planner/as-it-came"
    assert predictions(prepared(rows, labels=labels)) == {name: False}
    assert predictions(prepared(rows, labels=labels, adjudicator="chief")) == {name: True}


def test_bad_labels_are_named_and_counted(write: Write) -> None:
    said: list[str] = []
    rows = write("rows.jsonl", plan_row("a"))
    labels = write("labels.jsonl", label("a"), label("b", "perhaps"))
    result = prepared(rows, labels=labels, note=said.append)
    assert len(said) == 1
    assert said[0].startswith(f"{labels}:2: ")
    assert "1 of the labels could not be used" in audit("static", result).card.notes


def test_labels_of_other_rows_are_told_on_the_card(write: Write) -> None:
    rows = write("rows.jsonl", plan_row("a"))
    result = prepared(rows, labels=write("labels.jsonl", label("other")))
    assert result.material.n_known == 0
    assert any(
        "no label belongs to any of the rows" in n for n in audit("static", result).card.notes
    )
    matched = prepared(rows, labels=write("labels.jsonl", label("a")))
    assert not any("no label" in note for note in audit("static", matched).card.notes)


@pytest.mark.parametrize("text", ["", "{}", '{"item_id": 7}'])
def test_a_file_without_labels_is_refused(write: Write, text: str) -> None:
    labels = write("labels.jsonl", text)
    with pytest.raises(InputError, match="labels"):
        known_of(labels, None)


def test_without_labels_nothing_is_known() -> None:
    assert known_of(None, None) == NOTHING_KNOWN
    with pytest.raises(InputError, match="can't be read"):
        known_of(Path("no such file"), None)


def test_as_many_predictions_as_wanted_whole_cases_at_a_time() -> None:
    labels = EXAMPLES / "labels" / "holistic.jsonl"
    source = Source(EXAMPLES / "holistic.jsonl")
    known = known_of(labels, None)
    result = gather(
        source, known, n_bases=1, n_predictions=4, seed=1, note=lambda message: None
    ).predictions
    cases: Sequence[str] = [variant.case_id for variant in result]
    rows = [entry.item for entry in source if isinstance(entry, Task)]
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


def test_the_card_says_which_baseline_it_used(tmp_path: Path) -> None:
    rows, labels = EXAMPLES / "holistic.jsonl", EXAMPLES / "labels" / "holistic.jsonl"
    grade(rows, out=tmp_path / "run")
    probes: list[Probe] = []
    for known in (tmp_path / "run", labels):
        card = audit("static", prepared(rows, bases=1, labels=known, own=["cress-small"])).card
        probes += [probe for probe in card.probes if probe.name == "preference"]
    assert "truth of predictions: judge static as baseline" in probes[0].notes
    assert "truth of predictions: human labels" in probes[1].notes
    for probe in probes:
        assert {row[0]: row[1] for row in probe.tables[0].rows} == {
            "alder-large": "other",
            "birch-medium": "other",
            "cress-small": "own",
        }


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be read"):
        known_of(tmp_path, None)
    (tmp_path / "judgements.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="expected judgements, one a line"):
        known_of(tmp_path, None)


# protocol, rubric, shipped cases ------------------------------------------------------------------


def test_a_rubric_of_the_users_own_grades_the_bases(tmp_path: Path) -> None:
    rubric = tmp_path / "own.toml"
    rubric.write_text('extends = "small-holistic@1"\nname = "own"\nversion = 1\n', encoding="utf-8")
    result = prepared(SHORT, rubric=str(rubric))
    assert {base.rubric.name for base in result.material.bases} == {"own"}
    card = audit("static", result).card
    assert card.settings["rubric"] == str(rubric)
    with pytest.raises(OptionError):
        prepared(SHORT, rubric=str(tmp_path / "none.toml"))


def test_a_protocol_is_taken_for_every_row() -> None:
    result = prepared(SHORT, protocol="holistic")
    card = audit("static", result).card
    assert card.protocols == {"holistic": 2}
    assert card.settings["protocol"] == "holistic"
    with pytest.raises(OptionError):
        prepared(SHORT, protocol="no-such")


def test_the_shipped_cases_serve_where_there_are_no_rows() -> None:
    result = prepare(JudgeSpec(), AuditConfig(bases=1))
    assert result.material.name == "the cases shipped with apbjudge"
    assert result.material.leaks.outcome == "could not tell"
    assert result.material.bad_rows == 0
    assert result.material.predictions == ()
    assert result.known.problems == ()
    assert shipped("cases.jsonl").is_file()
