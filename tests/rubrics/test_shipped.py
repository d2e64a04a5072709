"""The shipped rubrics hold the benchmark's taxonomy, categories and types."""

from __future__ import annotations

import pytest

from apbjudge.errors import OptionError
from apbjudge.rubrics import load_rubric, rubric_names

SHAPES = {
    "apb-efficiency@1": ("flags", "plan"),
    "apb-extraneous-holistic@1": ("flags", "plan"),
    "apb-extraneous-step-wise@1": ("flags", "steps"),
    "apb-holistic@1": ("flags", "plan"),
    "apb-holistic-worked@1": ("flags", "plan"),
    "small-holistic@1": ("flags", "plan"),
    "small-unsolvable@1": ("pass", "plan"),
    "apb-step-wise-strict@1": ("flags", "steps"),
    "apb-step-wise@1": ("flags", "steps"),
    "apb-tool-broken@1": ("category", "steps"),
    "apb-unsolvable@1": ("pass", "plan"),
    "case-plan@1": ("flags", "plan"),
    "case-steps@1": ("flags", "steps"),
    "surrender@1": ("flags", "plan"),
}
KEYS = {
    "plan": [
        "E1_GOAL_UNDERSTANDING",
        "E2_TASK_COMPLETENESS",
        "E3_CONSTRAINT_VIOLATION",
        "E4_LOGICAL_DEFECT",
        "E5_TOOL_USE_ERROR",
        "E6_HALLUCINATION_ERROR",
    ],
    "steps": [
        "E1_GOAL_MISALIGNMENT",
        "E2_PREMATURE_CONCLUSION",
        "E3_CONSTRAINT_VIOLATION",
        "E4_LOGIC_ERROR",
        "E5_TOOL_USE_ERROR",
        "E6_HALLUCINATION_ERROR",
    ],
}
EXTENSIONS = [
    ("apb-efficiency@1", "apb-holistic@1"),
    ("apb-holistic-worked@1", "apb-holistic@1"),
    ("apb-extraneous-holistic@1", "apb-holistic@1"),
    ("apb-extraneous-step-wise@1", "apb-step-wise@1"),
]


def test_exactly_the_documented_rubrics_are_shipped() -> None:
    assert rubric_names() == sorted(SHAPES)


@pytest.mark.parametrize("ref", SHAPES)
def test_a_shipped_rubric_loads_under_its_own_name(ref: str) -> None:
    rubric = load_rubric(ref)
    assert rubric.ref == ref
    assert (rubric.shape, rubric.form) == SHAPES[ref]
    assert rubric.title
    assert rubric.task
    assert len(rubric.digest) == 64


@pytest.mark.parametrize("ref", SHAPES)
def test_a_name_without_version_means_the_newest(ref: str) -> None:
    assert load_rubric(ref.rsplit("@", 1)[0]) == load_rubric(ref)


@pytest.mark.parametrize(
    "ref", [r for r, (shape, _) in SHAPES.items() if shape == "flags" and r.startswith("apb-")]
)
def test_the_six_codes_carry_the_published_keys(ref: str) -> None:
    rubric = load_rubric(ref)
    assert [c.key for c in rubric.criteria] == KEYS[rubric.form]
    assert [c.code for c in rubric.criteria] == ["E1", "E2", "E3", "E4", "E5", "E6"]
    assert all(c.definition and c.look_for and c.not_this for c in rubric.criteria)


def test_tool_broken_knows_the_five_behaviours() -> None:
    results = [(c.number, c.name, c.correct) for c in load_rubric("apb-tool-broken@1").categories]
    assert results == [
        (1, "replacement", True),
        (2, "alternative", True),
        (3, "retry", False),
        (4, "refusal", False),
        (5, "other", False),
    ]


def test_unsolvable_has_rules_for_each_of_the_four_types() -> None:
    types = load_rubric("apb-unsolvable@1").types
    assert sorted(types) == [
        "contradictory_constraints",
        "information_missing",
        "tool_removal",
        "visual_missing",
    ]
    assert all(rule.situation and rule.passes and rule.fails for rule in types.values())


@pytest.mark.parametrize(("ref", "base"), EXTENSIONS)
def test_an_extension_adds_to_its_base_and_takes_nothing_away(ref: str, base: str) -> None:
    extended, plain = load_rubric(ref), load_rubric(base)
    own = len(plain.principles)
    assert extended.principles[:own] == plain.principles
    assert len(extended.principles) > own or extended.reply_fields
    assert extended.criteria == plain.criteria
    assert extended.bands == plain.bands


def test_the_strict_reading_has_the_codes_and_grades_of_the_usual_and_none_of_its_leniency() -> (
    None
):
    strict, usual = load_rubric("apb-step-wise-strict@1"), load_rubric("apb-step-wise@1")
    assert (strict.call_due, usual.call_due) == ("reference", "never")
    assert strict.criteria == usual.criteria
    assert [(b.grade, b.flags) for b in strict.bands] == [(b.grade, b.flags) for b in usual.bands]
    said = (strict.model_dump_json(), usual.model_dump_json())
    for lenient in ("detour that still serves", "extra check", "equally good", "optimal or not"):
        assert [lenient in text for text in said] == [False, True], lenient


@pytest.mark.parametrize("ref", ["case-plan@1", "case-steps@1"])
def test_rubrics_of_cases_know_sound_and_unsound_alone(ref: str) -> None:
    rubric = load_rubric(ref)
    assert rubric.scale.grades == (1.0, 0.0)
    assert all(c.definition and c.look_for and c.not_this for c in rubric.criteria)
    assert rubric.scale.allowed(rubric.codes[:1]) == rubric.scale.allowed(rubric.codes) == (0.0,)


def test_no_two_rubrics_share_a_digest() -> None:
    digests = [load_rubric(ref).digest for ref in rubric_names()]
    assert len(set(digests)) == len(digests)


@pytest.mark.parametrize("ref", ["apb-holistic@2", "APB-HOLISTIC", "apb", "", "@1", "../apb"])
def test_an_unknown_rubric_is_refused_with_the_names_that_exist(ref: str) -> None:
    with pytest.raises(OptionError, match="rubric: expected one of apb-efficiency@1") as caught:
        load_rubric(ref)
    assert str(caught.value).endswith(f"got {ref}")
