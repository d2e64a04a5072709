"""The grade scale: which grades go with which flags, and how odd grades are put right."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.rubrics import load_rubric

CODES = ("E1", "E2", "E3", "E4", "E5", "E6")
FLAG_SETS = [frozenset(c) for size in range(7) for c in combinations(CODES, size)]
SEVERE = frozenset({"E1", "E3", "E6"})

# The step-wise bands of the benchmark for the eight combinations without E1, E3 and E6. A
# "complete breakdown" (0.0) is read as: never of E2 or E5 alone, which have bands of their own.
STEP_WISE_WITHOUT_SEVERE = {
    "": (1.0,),
    "E5": (0.8, 0.6),
    "E4": (0.6, 0.0),
    "E2": (0.4, 0.0),
    "E4 E5": (0.4, 0.2, 0.0),
    "E2 E4": (0.4, 0.2, 0.0),
    "E2 E5": (0.4, 0.2, 0.0),
    "E2 E4 E5": (0.4, 0.2, 0.0),
}
STEP_WISE_SEVERE = (0.2, 0.0)

STEP_RUBRICS = ["apb-step-wise@1", "apb-step-wise-strict@1", "apb-extraneous-step-wise@1"]
PLAN_RUBRICS = ["apb-holistic@1", "apb-extraneous-holistic@1", "apb-efficiency@1"]
flag_sets = st.sampled_from(FLAG_SETS)
any_grade = st.floats(min_value=0, max_value=1)


def name(flags: frozenset[str]) -> str:
    return " ".join(sorted(flags))


@pytest.mark.parametrize("ref", STEP_RUBRICS)
def test_step_wise_grades_that_may_stand_beside_flags(ref: str) -> None:
    for flags in FLAG_SETS:
        expected = STEP_WISE_SEVERE if flags & SEVERE else STEP_WISE_WITHOUT_SEVERE[name(flags)]
        assert load_rubric(ref).scale.allowed(flags) == expected, flags


@pytest.mark.parametrize("ref", PLAN_RUBRICS)
def test_holistic_grades_that_may_stand_beside_flags(ref: str) -> None:
    for flags in FLAG_SETS:
        expected = (0.8, 0.6, 0.4, 0.2, 0.0) if flags else (1.0,)
        assert load_rubric(ref).scale.allowed(flags) == expected, flags


def test_of_two_grades_as_near_the_lower_one_is_taken() -> None:
    scale = load_rubric("apb-step-wise@1").scale
    assert scale.nearest(0.7, ["E5"]) == 0.6
    assert scale.nearest(0.1, ["E1"]) == 0.0


@settings(deadline=None, max_examples=200)
@given(grade=any_grade, flags=flag_sets, ref=st.sampled_from(STEP_RUBRICS + PLAN_RUBRICS))
def test_nearest_is_legal_and_no_legal_grade_is_nearer(
    grade: float, flags: frozenset[str], ref: str
) -> None:
    scale = load_rubric(ref).scale
    chosen = scale.nearest(grade, flags)
    assert chosen in scale.allowed(flags)
    assert all(abs(chosen - grade) <= abs(g - grade) + 1e-9 for g in scale.allowed(flags))
    assert scale.nearest(chosen, flags) == chosen


ON_THE_SCALE = {1: 1.0, -0.0: 0.0, 0.1 + 0.7: 0.8, 0.1 + 0.1 + 0.1 + 0.3: 0.6, 0.4000001: 0.4}


def test_a_number_is_a_grade_only_when_it_is_on_the_scale() -> None:
    snap = load_rubric("apb-holistic@1").scale.snap
    assert {value: snap(value) for value in ON_THE_SCALE} == ON_THE_SCALE
    others = (0.40001, 0.7, -0.2, 1.2, 80, float("nan"), float("inf"))
    assert {snap(value) for value in others} == {None}
