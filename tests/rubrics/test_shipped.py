"""The shipped rubrics hold the benchmark's taxonomy, categories and types."""

from __future__ import annotations

import pytest

from apbjudge.errors import OptionError
from apbjudge.rubrics import load_rubric, rubric_names

KEYS = {
    "plan": "E1_GOAL_UNDERSTANDING E2_TASK_COMPLETENESS E3_CONSTRAINT_VIOLATION "
    "E4_LOGICAL_DEFECT E5_TOOL_USE_ERROR E6_HALLUCINATION_ERROR",
    "steps": "E1_GOAL_MISALIGNMENT E2_PREMATURE_CONCLUSION E3_CONSTRAINT_VIOLATION "
    "E4_LOGIC_ERROR E5_TOOL_USE_ERROR E6_HALLUCINATION_ERROR",
}
"""As published."""
EXTENSIONS = [
    ("apb-efficiency@1", "apb-holistic@1"),
    ("apb-holistic-worked@1", "apb-holistic@1"),
    ("apb-extraneous-holistic@1", "apb-holistic@1"),
    ("apb-extraneous-step-wise@1", "apb-step-wise@1"),
    ("apb-extraneous-step-strict@1", "apb-step-wise-strict@1"),
    ("apb-extraneous-holistic@2", "apb-extraneous-holistic@1"),
]


def test_shipped_rubrics_load_under_their_own_names() -> None:
    rubrics = [load_rubric(ref) for ref in rubric_names()]
    assert [rubric.ref for rubric in rubrics] == rubric_names()
    newest = {rubric.name: rubric for rubric in rubrics}
    assert {name: load_rubric(name) for name in newest} == newest
    assert len({rubric.digest for rubric in rubrics}) == len(rubrics)
    benchmarks = [r for r in rubrics if r.shape == "flags" and r.name.startswith("apb-")]
    assert len(benchmarks) == 10
    for rubric in benchmarks:
        assert " ".join(c.key for c in rubric.criteria) == KEYS[rubric.form]
        assert all(c.definition and c.look_for and c.not_this for c in rubric.criteria)


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


@pytest.mark.parametrize("ref", ["apb-holistic@2", "apb", "../apb"])
def test_an_unknown_rubric_is_refused_with_the_names_that_exist(ref: str) -> None:
    with pytest.raises(OptionError, match="rubric: expected one of apb-efficiency@1") as caught:
        load_rubric(ref)
    assert str(caught.value).endswith(f"got {ref}")
