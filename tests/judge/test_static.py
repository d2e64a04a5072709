"""The embedded judge: proven findings only, and figures that say what they are."""

from __future__ import annotations

from typing import Any

import pytest

import apbjudge
from apbjudge import Verdict
from apbjudge.judge import UPPER_BOUND
from tests.support.judging import CODES, plan_row, step_row


def static(row: dict[str, Any]) -> Verdict:
    (judgement,) = apbjudge.grade([row]).judgements
    assert isinstance(judgement, Verdict)
    return judgement


def test_nothing_provable_is_correct_and_named_as_no_more_than_that() -> None:
    verdict = static(plan_row("a"))
    assert (verdict.is_correct, verdict.grade, verdict.judge) == (True, None, "static")
    assert verdict.errors == dict.fromkeys(CODES, False)
    assert verdict.reasoning == "no provable fault"
    assert (verdict.cost_usd, verdict.raw, verdict.usage) == (0.0, None, None)


def test_every_output_says_that_the_figures_are_bounds() -> None:
    run = apbjudge.grade([plan_row("a")])
    assert "upper bound of CR" in UPPER_BOUND
    assert run.summary.to_json()["note"] == UPPER_BOUND
    text = " ".join(apbjudge.summary_text(run.summary).split())
    assert UPPER_BOUND in text


def test_a_proven_fault_flags_its_code_and_gives_no_grade() -> None:
    verdict = static(step_row("a", {"town": "Porto"}))
    assert (verdict.is_correct, verdict.grade) == (False, None)
    assert verdict.errors == dict.fromkeys(CODES, False) | {"E5": True}
    proven = [finding for finding in verdict.findings if finding.certainty == "proven"]
    assert verdict.reasoning == "; ".join(f"{f.where}: {f.message}" for f in proven)


def test_a_suspicion_never_decides() -> None:
    row = plan_row("a", model_response={"plan": "Look it up by hand.", "tool_chain": []})
    verdict = static(row)
    assert [finding.certainty for finding in verdict.findings] == ["suspected"]
    assert (verdict.is_correct, verdict.grade) == (True, None)


@pytest.mark.parametrize(
    ("name", "category", "correct"),
    [("find_train", 1, True), ("find_bus", 3, False), ("find_taxi", 5, False)],
)
def test_categories_follow_from_exact_names(name: str, category: int, correct: bool) -> None:
    row = step_row("a", {"city": "Porto"}, broken_tool_name="find_bus")
    row["tools"] = [*row["tools"], {"name": "find_bus"}]
    row["replacement_tool"] = {"name": "find_train"}
    row["model_response"] = row["model_response"].replace("find_train", name)
    verdict = static(row)
    assert (verdict.category, verdict.is_correct) == (category, correct)
    assert (verdict.grade, verdict.errors) == (None, None)


def test_a_category_that_only_a_judge_can_tell_is_left_open() -> None:
    row = step_row("a", {"city": "Porto"}, broken_tool_name="find_bus")
    row["tools"] = [*row["tools"], {"name": "find_bus"}]
    verdict = static(row)
    assert (verdict.category, verdict.is_correct) == (None, True)
