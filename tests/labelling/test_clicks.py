"""Clicks: whatever is clicked in whatever order, a label never contradicts itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.errors import RowError
from apbjudge.labelling.clicks import clicked, flagged, missing, remark
from apbjudge.records import ERROR_CODES, HumanLabel
from apbjudge.rubrics import Rubric, load_rubric

FLAGS = load_rubric("apb-step-wise")
BROKEN = load_rubric("apb-tool-broken")
PASS = load_rubric("apb-unsolvable")
NOTHING = HumanLabel(item_id="a")
CORRECT, INCORRECT = {"set": "correct", "to": True}, {"set": "correct", "to": False}


def flag(code: str) -> dict[str, Any]:
    return {"set": "flag", "to": code}


def grade(value: float) -> dict[str, Any]:
    return {"set": "grade", "to": value}


def after(*clicks: dict[str, Any], rubric: Rubric = FLAGS) -> HumanLabel:
    label = NOTHING
    for click in clicks:
        label = clicked(label, click, rubric)
    return label


CLICKS = st.lists(
    st.sampled_from([CORRECT, INCORRECT, *map(flag, ERROR_CODES), *map(grade, FLAGS.scale.grades)]),
    max_size=12,
)


@given(CLICKS)
def test_no_order_of_clicks_makes_a_label_that_contradicts_itself(
    clicks: list[dict[str, Any]],
) -> None:
    label = after(*clicks)
    assert HumanLabel(**dict(label)).contradiction is None
    assert (label.is_correct is None) == (not clicks)
    assert label.is_correct or label.errors is None or flagged(label)
    if not missing(label, FLAGS):
        assert label.is_correct == (label.grade == 1) == (not flagged(label))
        assert label.errors is not None
        assert set(label.errors) == set(ERROR_CODES)


def test_what_is_left_to_be_said_is_named_until_nothing_is() -> None:
    assert missing(NOTHING, FLAGS) == ("correct or not",)
    assert missing(after(CORRECT), FLAGS) == ()
    assert missing(after(INCORRECT), FLAGS) == ("at least one code", "a grade")
    assert missing(after(flag("E4")), FLAGS) == ("a grade",)
    assert missing(after(flag("E4"), flag("E4")), FLAGS) == missing(after(INCORRECT), FLAGS)
    assert missing(after(flag("E4"), grade(0.6)), FLAGS) == ()
    assert missing(after(INCORRECT, rubric=PASS), PASS) == ()
    assert missing(NOTHING, BROKEN) == ("a category",)


def test_a_category_says_whether_the_step_is_correct() -> None:
    said = [after({"set": "category", "to": n}, rubric=BROKEN).is_correct for n in range(1, 6)]
    assert said == [True, True, False, False, False]


def test_a_grade_that_the_rubric_does_not_give_to_these_flags_is_remarked_on_and_stands() -> None:
    label = after(flag("E1"), grade(0.8))
    assert remark(label, FLAGS) == "With E1 the rubric gives 0.2 or 0, not 0.8."
    assert missing(label, FLAGS) == ()
    assert not remark(after(flag("E5"), grade(0.8)), FLAGS)


def test_a_faulty_step_says_that_the_prediction_is_not_correct() -> None:
    label = NOTHING
    for number, steps in ((2, (2,)), (1, (1, 2)), (2, (1,))):
        label = clicked(label, {"set": "step", "to": number}, FLAGS, n_steps=2)
        assert (label.is_correct, label.faulty_steps) == (False, steps)
    assert clicked(label, CORRECT, FLAGS).faulty_steps == ()
    assert clicked(label, CORRECT, PASS).faulty_steps == ()
    assert clicked(label, INCORRECT, PASS).faulty_steps == (1,)


@pytest.mark.parametrize(
    ("click", "rubric"),
    [
        ({"set": "flag", "to": "E7"}, FLAGS),
        ({"set": "grade", "to": 0.5}, FLAGS),
        ({"set": "correct", "to": 1}, FLAGS),
        ({"set": "correct", "to": True}, BROKEN),
        ({"set": "note", "to": "x" * 4001}, PASS),
        ({"set": "note", "to": "\ud800"}, PASS),
        ({"set": {}, "to": {}}, FLAGS),
        ({"set": "step", "to": 1}, FLAGS),
        ({}, FLAGS),
    ],
)
def test_a_click_that_the_rubric_does_not_know_is_refused(
    click: dict[str, Any], rubric: Rubric
) -> None:
    with pytest.raises(RowError):
        clicked(NOTHING, click, rubric)
