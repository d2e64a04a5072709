"""Judges that are no model: a function of the user's, and what code can prove."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge import Item, OptionError
from apbjudge.judge import UPPER_BOUND
from tests.support.judging import CODES, plan_row, step_row
from tests.support.server import PATIENCE_S

pytestmark = pytest.mark.filterwarnings("ignore:no row has a verdict")


def judged(judge: Any, row: dict[str, Any] | None = None) -> Any:
    (judgement,) = apbjudge.grade([row or plan_row("a")], judge=judge).judgements
    return judgement


def answering(answer: Any) -> Any:
    return lambda item: answer


def test_a_plain_and_an_async_function_judge_items() -> None:
    asked: list[str] = []

    def plain(item: Item) -> dict[str, Any]:
        asked.append(item.item_id)
        return {"is_correct": True, "grade": 1.0, "reasoning": "fine"}

    async def slow(item: Item) -> dict[str, Any]:
        return plain(item)

    for function in (plain, slow):
        found = judged(function)
        assert (found.judge, found.is_correct, found.grade) == (function.__name__, True, 1.0)
        assert found.reasoning == "fine"
    assert asked == ["a", "a"]


def test_the_rules_for_contradictions_and_proven_faults_hold_here_too() -> None:
    contrary = judged(answering({"is_correct": True, "errors": {"E4": True}, "grade": 1.0}))
    assert (contrary.is_correct, contrary.grade) == (False, 0.8)
    again = judged(answering(contrary))  # a verdict of another judge counts as this judge's
    assert (again.is_correct, again.grade, again.errors) == (False, 0.8, contrary.errors)
    judge, row = answering({"is_correct": True, "errors": {}, "grade": 1.0}), step_row("a", {})
    proven = judged(judge, row)
    assert (proven.is_correct, proven.grade) == (False, 0.6)
    assert [code for code, is_set in proven.errors.items() if is_set] == ["E5"]
    judge.evidence = False
    assert judged(judge, row).is_correct
    broken = step_row("a", {"city": "Porto"}, broken_tool_name="find_bus")
    assert judged(answering({"category": 2}), broken).is_correct
    unscored = judged(answering({"is_correct": True}), broken)
    assert unscored.detail == "field category: expected 1 to 5, got nothing"


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ("correct", "expected a Verdict or a mapping, got 'correct'"),
        ({"is_correct": 1}, "field is_correct: expected true or false, got 1 (int)"),
        ({"is_correct": True, "score": 1}, "field score: expected some of is_correct, grade"),
        ({"is_correct": False, "grade": 0.7}, "field grade: expected one of 1.0, 0.8, 0.6"),
        ({"is_correct": True, "grade": 0.2}, "grade 0.2 does not go with is_correct=True"),
        ({"is_correct": False, "errors": {"E9": True}}, "(E1, E2, E3, E4, E5, E6), got E9"),
        ({"is_correct": False, "errors": ["E1"]}, "field errors: expected true or false by code"),
    ],
)
def test_an_answer_that_is_no_verdict_leaves_the_item_unscored(answer: Any, complaint: str) -> None:
    judgement = judged(answering(answer))
    assert judgement.reason == "unparsable"
    assert complaint in judgement.detail


def test_what_it_raises_leaves_the_item_unscored_and_is_asked_again(tmp_path: Path) -> None:
    is_down = True

    def judge(item: Item) -> dict[str, Any]:
        if is_down and item.item_id == "b":
            raise KeyError("no connection")
        return {"is_correct": True}

    rows = [plan_row(name) for name in "abc"]
    first = apbjudge.grade(rows, judge=judge, out=tmp_path / "run")
    assert first.summary.totals.unscored == {"error": 1}
    assert first.summary.totals.last_errors == {"error": "KeyError: 'no connection'"}
    is_down = False
    second = apbjudge.grade(rows, judge=judge, out=tmp_path / "run")
    assert (second.summary.scored, second.progress.skipped) == (3, 2)


def test_settings_that_would_do_nothing_are_refused() -> None:
    judge = answering({})
    refused: dict[str, dict[str, Any]] = {
        "--escalate: expected a model as first judge": {"escalate": "openai/gpt-5"},
        "--max-cost: it limits a model's calls": {"max_cost": 1.0},
        "--judge: expected a model's name or a JudgeSpec": {"judge": [judge, "static"]},
    }
    for complaint, settings in refused.items():
        with pytest.raises(OptionError, match=complaint):
            apbjudge.grade([plan_row("a")], **({"judge": judge} | settings))


def test_plain_functions_run_side_by_side() -> None:
    """Each waits for the other: one after the other they would never meet."""
    meeting = threading.Barrier(2, timeout=PATIENCE_S)

    def judge(item: Item) -> dict[str, Any]:
        meeting.wait()
        return {"is_correct": True}

    run = apbjudge.grade([plan_row("a"), plan_row("b")], judge=judge)
    assert run.summary.scored == 2


def test_another_version_is_another_run(tmp_path: Path) -> None:
    judge: Any = answering({"is_correct": True})
    judge.name, judge.version = "mine", "1"
    rows = [plan_row("a")]
    run = apbjudge.grade(rows, judge=judge, out=tmp_path / "run")
    assert (run.summary.judge, run.manifest["settings"]["version"]) == ("mine", "1")
    judge.version = "2"
    with pytest.raises(OptionError, match=r"other settings \(judge.version\)"):
        apbjudge.grade(rows, judge=judge, out=tmp_path / "run")


# What code can prove ------------------------------------------------------------------------------


def test_nothing_provable_is_correct_and_named_as_no_more_than_that() -> None:
    run = apbjudge.grade([plan_row("a")])
    (verdict,) = run.judgements
    assert (verdict.is_correct, verdict.grade, verdict.judge) == (True, None, "static")
    assert verdict.errors == dict.fromkeys(CODES, False)
    assert verdict.reasoning == "no provable fault"
    assert (verdict.cost_usd, verdict.raw, verdict.usage) == (0.0, None, None)
    assert run.summary.to_json()["note"] == UPPER_BOUND
    assert UPPER_BOUND in " ".join(apbjudge.summary_text(run.summary).split())


def test_a_proven_fault_flags_its_code_and_gives_no_grade() -> None:
    verdict = judged("static", step_row("a", {"town": "Porto"}))
    assert (verdict.is_correct, verdict.grade) == (False, None)
    assert verdict.errors == dict.fromkeys(CODES, False) | {"E5": True}
    proven = [finding for finding in verdict.findings if finding.certainty == "proven"]
    assert verdict.reasoning == "; ".join(f"{f.where}: {f.message}" for f in proven)
