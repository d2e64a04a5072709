"""The embedded judge: proven findings only, and figures that say what they are."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

import apbjudge
from apbjudge import Row, Verdict
from apbjudge.judge import UPPER_BOUND, StaticJudge
from apbjudge.judge.source import Task
from apbjudge.protocols import PROTOCOLS
from apbjudge.records import ERROR_CODES, ErrorCode, Finding
from apbjudge.rubrics import load_rubric
from tests.support.judging import CODES, plan_row, step_row

FLAG_SETS = [
    frozenset(code for code, is_set in zip(ERROR_CODES, bits, strict=True) if is_set)
    for bits in product([False, True], repeat=6)
]


def static(row: dict[str, Any]) -> Verdict:
    (judgement,) = apbjudge.grade([row]).judgements
    assert isinstance(judgement, Verdict)
    return judgement


def test_nothing_provable_is_correct_and_named_as_no_more_than_that() -> None:
    verdict = static(plan_row("a"))
    assert (verdict.is_correct, verdict.grade, verdict.judge) == (True, 1.0, "static")
    assert verdict.errors == dict.fromkeys(CODES, False)
    assert verdict.reasoning == "no provable fault"
    assert (verdict.cost_usd, verdict.raw, verdict.usage) == (0.0, None, None)


def test_every_output_says_that_the_figures_are_bounds() -> None:
    run = apbjudge.grade([plan_row("a")])
    assert "CR is an upper bound (no provable fault)" in UPPER_BOUND
    assert run.summary.to_json()["note"] == UPPER_BOUND
    text = " ".join(apbjudge.summary_text(run.summary).split())
    assert UPPER_BOUND in text


def test_a_proven_fault_flags_its_code_and_takes_the_best_grade_beside_it() -> None:
    verdict = static(step_row("a", {"town": "Porto"}))
    assert (verdict.is_correct, verdict.grade) == (False, 0.8)
    assert verdict.errors == dict.fromkeys(CODES, False) | {"E5": True}
    proven = [finding for finding in verdict.findings if finding.certainty == "proven"]
    assert verdict.reasoning == "; ".join(f"{f.where}: {f.message}" for f in proven)


def test_a_suspicion_never_decides() -> None:
    row = plan_row("a", model_response={"plan": "Look it up by hand.", "tool_chain": []})
    verdict = static(row)
    assert [finding.certainty for finding in verdict.findings] == ["suspected"]
    assert (verdict.is_correct, verdict.grade) == (True, 1.0)


@pytest.mark.parametrize("rubric", ["apb-holistic@1", "apb-step-wise@1"])
@pytest.mark.parametrize("flags", FLAG_SETS, ids=lambda flags: "+".join(sorted(flags)) or "none")
def test_the_grade_is_the_best_that_the_flags_allow(
    rubric: str, flags: frozenset[ErrorCode]
) -> None:
    findings = tuple(
        Finding(code=code, certainty="proven", where="here", message="m", rule="format")
        for code in sorted(flags)
    )
    unit = Task(
        item=Row(plan_row("a"), 1).to_item(),
        protocol=PROTOCOLS["holistic"],
        rubric=load_rubric(rubric),
        findings=findings,
        digest=b"",
        offset=0,
    )
    verdict = StaticJudge().judge(unit, "fingerprint")
    if not flags:
        best = 1.0
    elif rubric == "apb-holistic@1" or flags == {"E5"}:
        best = 0.8
    elif flags == {"E4"}:
        best = 0.6
    else:
        best = 0.2 if flags & {"E1", "E3", "E6"} else 0.4
    assert verdict.grade == best
    assert verdict.is_correct is (not flags)
    assert {code for code, flagged in (verdict.errors or {}).items() if flagged} == flags


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
