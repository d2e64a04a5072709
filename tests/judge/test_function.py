"""A function of the user's as judge: what it may return, and what becomes of what it may not."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge import Item, OptionError, Unscored, Verdict
from tests.support.judging import plan_row, step_row

pytestmark = pytest.mark.filterwarnings("ignore:no row has a verdict")


def judged(judge: Any, row: dict[str, Any] | None = None, **settings: Any) -> Verdict | Unscored:
    run = apbjudge.grade([row or plan_row("a")], judge=judge, **settings)
    (judgement,) = run.judgements
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
        verdict = judged(function)
        assert isinstance(verdict, Verdict)
        assert (verdict.judge, verdict.is_correct, verdict.grade, verdict.reasoning) == (
            function.__name__,
            True,
            1.0,
            "fine",
        )
    assert asked == ["a", "a"]


def test_a_verdict_of_another_judge_counts_as_this_judge_s() -> None:
    model = judged(answering({"is_correct": False, "errors": {"E2": True}, "grade": 0.4}))
    again = judged(answering(model))
    assert isinstance(again, Verdict)
    assert (again.is_correct, again.grade, again.errors) == (False, 0.4, model.errors)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("answer", "is_correct", "grade"),
    [
        ({"is_correct": True, "errors": {"E4": True}}, False, None),
        ({"is_correct": True, "errors": {"E4": True}, "grade": 1.0}, False, 0.8),
        ({"is_correct": False, "errors": {}, "grade": 1.0}, True, 1.0),
        ({"is_correct": False, "grade": 0.2}, False, 0.2),
    ],
)
def test_the_rule_for_contradictions_holds_here_too(
    answer: Any, is_correct: bool, grade: float | None
) -> None:
    verdict = judged(answering(answer))
    assert isinstance(verdict, Verdict)
    assert (verdict.is_correct, verdict.grade) == (is_correct, grade)
    assert bool(verdict.overrides) == (verdict.is_correct != answer["is_correct"])


def test_proven_faults_are_enforced_unless_the_judge_wants_no_evidence() -> None:
    judge, row = answering({"is_correct": True, "errors": {}, "grade": 1.0}), step_row("a", {})
    verdict = judged(judge, row)
    assert isinstance(verdict, Verdict)
    assert (verdict.is_correct, verdict.grade) == (False, 0.6)
    assert [code for code, is_set in (verdict.errors or {}).items() if is_set] == ["E5"]
    judge.evidence = False
    verdict = judged(judge, row)
    assert isinstance(verdict, Verdict)
    assert verdict.is_correct


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (None, "expected a Verdict or a mapping, got nothing"),
        ("correct", "expected a Verdict or a mapping, got 'correct'"),
        ({}, "field is_correct: expected true or false, got nothing"),
        ({"is_correct": 1}, "field is_correct: expected true or false, got 1 (int)"),
        ({"is_correct": True, "score": 1}, "field score: expected some of is_correct, grade"),
        ({"is_correct": False, "grade": 0.7}, "field grade: expected one of 1.0, 0.8, 0.6"),
        ({"is_correct": False, "errors": {"E9": True}}, "(E1, E2, E3, E4, E5, E6), got E9"),
        ({"is_correct": False, "errors": ["E1"]}, "field errors: expected true or false by code"),
        ({"is_correct": False, "errors": {"E1": 1}}, "field errors: expected true or false"),
        ({"is_correct": True, "grade": 0.2}, "grade 0.2 does not go with is_correct=True"),
        ({"is_correct": False, "errors": {}, "grade": 0.2}, "no code is flagged"),
    ],
)
def test_an_answer_that_is_no_verdict_leaves_the_item_unscored(answer: Any, complaint: str) -> None:
    judgement = judged(answering(answer))
    assert isinstance(judgement, Unscored)
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


def test_categories_are_needed_where_the_protocol_has_them() -> None:
    row = step_row("a", {"city": "Porto"}, broken_tool_name="find_bus")
    row["tools"] = [*row["tools"], {"name": "find_bus"}]
    verdict = judged(answering({"category": 2}), row)
    assert isinstance(verdict, Verdict)
    assert (verdict.category, verdict.is_correct) == (2, True)
    judgement = judged(answering({"is_correct": True}), row)
    assert isinstance(judgement, Unscored)
    assert judgement.detail == "field category: expected 1 to 5, got nothing"


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"escalate": "openai/gpt-5"}, "--escalate: expected a model as first judge"),
        ({"max_cost": 1.0}, "--max-cost: it limits a model's calls"),
        ({"batch": True}, "--batch: expected one judge that is a model"),
        ({"judge": [answering({}), "static"]}, "--judge: expected a model's name or a JudgeSpec"),
        ({"judge": 3}, "--judge: expected a model's name or a JudgeSpec"),
    ],
)
def test_settings_that_would_do_nothing_are_refused(
    settings: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(OptionError, match=complaint):
        apbjudge.grade([plan_row("a")], **({"judge": answering({})} | settings))


def test_plain_functions_run_side_by_side() -> None:
    """Each waits for the other: one after the other they would never meet."""
    meeting = threading.Barrier(2, timeout=30)

    def judge(item: Item) -> dict[str, Any]:
        meeting.wait()
        return {"is_correct": True}

    run = apbjudge.grade([plan_row("a"), plan_row("b")], judge=judge)
    assert run.summary.scored == 2


def test_another_version_is_another_run(tmp_path: Path) -> None:
    class Judge:
        name = "mine"

        def __init__(self, version: str) -> None:
            self.version = version

        def __call__(self, item: Item) -> dict[str, Any]:
            return {"is_correct": True}

    rows = [plan_row("a")]
    run = apbjudge.grade(rows, judge=Judge("1"), out=tmp_path / "run")
    assert run.summary.judge == "mine"
    assert run.manifest["settings"]["version"] == "1"
    assert apbjudge.grade(rows, judge=Judge("1"), out=tmp_path / "run").progress.skipped == 1
    with pytest.raises(OptionError, match=r"other settings \(judge.version\)"):
        apbjudge.grade(rows, judge=Judge("2"), out=tmp_path / "run")
