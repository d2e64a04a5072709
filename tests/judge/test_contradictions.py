"""A judge that contradicts itself: asked again, then settled by the written rule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge import JudgeSpec
from apbjudge.judge.summary_text import summary_text
from apbjudge.llm import Request, ScriptedClient
from tests.support.judging import CODES, MODEL, RIGHT, plan_row, step_row, verdict, write_rows
from tests.support.server import Answer, Status, by_content


def says(value: dict[str, Any]) -> Answer:
    return Answer(json.dumps(value))


AGREE = (
    "Give your verdict again as one JSON object with the same keys, changed so that its parts "
    "agree with each other and with the rules above."
)
NAMELESS = verdict(grade=0.4, is_correct=False)
FLAGGED_BUT_RIGHT = verdict("E2", grade=0.6, is_correct=True)


DECIDE = "Decide first whether the code really holds."
DECIDE_NONE = "Decide first whether a code holds."
NO_CODE = (
    "You called it not correct but set no code. Either set the code that fits best, or call it "
    "correct."
)


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [
        (FLAGGED_BUT_RIGHT, f"is_correct=true does not go with E2 flagged. {DECIDE}"),
        (
            verdict("E1", "E5", grade=1.0),
            "grade 1.0 does not go with E1, E5 flagged (fitting: 0.8, 0.6, 0.4, 0.2, 0.0). "
            + DECIDE,
        ),
        (
            verdict(grade=0.8),
            f"grade 0.8 does not go with no code flagged (fitting: 1.0). {DECIDE_NONE}",
        ),
        (NAMELESS, NO_CODE),
    ],
)
def test_a_contradiction_is_asked_about_with_its_reason(
    serve: Any, bench: Any, reply: dict[str, Any], complaint: str
) -> None:
    server = serve([says(reply), says(verdict("E4", grade=0.2))])
    judged = bench(server).judge([plan_row("a")])["a"]
    assert (judged["is_correct"], judged["grade"]) == (False, 0.2)
    assert (judged["inconsistent"], judged["overrides"]) == (False, [])
    assert len(server.requests) == 2
    assistant, user = server.requests[1].body["messages"][2:]
    assert assistant == {"role": "assistant", "content": json.dumps(reply)}
    assert user["content"] == f"{complaint} {AGREE}"


def overrides(row: dict[str, Any]) -> list[tuple[str, Any, Any, str]]:
    return [(o["field"], o["was"], o["now"], o["because"]) for o in row["overrides"]]


FLAGS = "the flags decide"
NO_FLAG = "no code is flagged"


@pytest.mark.parametrize(
    ("reply", "changed"),
    [
        (
            verdict("E1", grade=1.0, is_correct=True),
            [("is_correct", True, False, FLAGS), ("grade", 1.0, 0.8, FLAGS)],
        ),
        (verdict(grade=0.0), [("grade", 0.0, 1.0, NO_FLAG)]),
        (verdict(is_correct=False), [("is_correct", False, True, NO_FLAG)]),
    ],
)
def test_what_stays_contradictory_is_settled_by_the_written_rule(
    serve: Any, bench: Any, reply: dict[str, Any], changed: list[tuple[str, Any, Any, str]]
) -> None:
    server = serve([says(reply)])
    judged = bench(server).judge([plan_row("a")])["a"]
    settled = reply | {field: now for field, _, now, _ in changed}
    assert (judged["kind"], judged["inconsistent"]) == ("verdict", True)
    assert judged["is_correct"] is settled["is_correct"]
    assert judged["grade"] == settled["grade"]
    assert judged["errors"] == {code: reply[code] for code in CODES}
    assert overrides(judged) == changed
    assert judged["raw"].count(json.dumps(reply)) == 3
    assert len(server.requests) == 3


def test_a_fault_that_the_judge_can_not_name_is_no_verdict(serve: Any, bench: Any) -> None:
    judged = bench(serve([says(NAMELESS)])).judge([plan_row("a")])["a"]
    assert (judged["kind"], judged["reason"]) == ("unscored", "inconsistent")
    assert [judged["is_correct"], judged["grade"], judged["errors"]] == [None, None, None]
    assert judged["raw"].count(json.dumps(NAMELESS)) == 3


@pytest.mark.parametrize(("category", "correct"), [(2, True), (4, False)])
def test_a_category_decides_over_is_correct(
    serve: Any, bench: Any, category: int, correct: bool
) -> None:
    reply = {"reasoning": "r", "category": category, "is_correct": not correct}
    row = step_row("a", {"city": "Porto"}, broken_tool_name="find_bus")
    server = serve([says(reply)])
    judged = bench(server).judge([row])["a"]
    asked = server.requests[1].body["messages"][-1]["content"]
    stated = str(not correct).lower()
    assert asked == f"category {category} does not go with is_correct={stated}. {AGREE}"
    assert (judged["category"], judged["is_correct"]) == (category, correct)
    assert judged["inconsistent"] is True
    assert overrides(judged) == [("is_correct", not correct, correct, "the category decides")]


def test_a_contradiction_counts_when_the_second_reply_can_not_be_read(
    serve: Any, bench: Any
) -> None:
    server = serve([says(FLAGGED_BUT_RIGHT), Answer("sorry")])
    judged = bench(server).judge([plan_row("a")])["a"]
    assert (judged["is_correct"], judged["grade"], judged["inconsistent"]) == (False, 0.6, True)


def test_an_endpoint_that_fails_at_the_second_question_leaves_no_verdict(
    serve: Any, bench: Any
) -> None:
    server = serve([says(FLAGGED_BUT_RIGHT), Status(500)])
    judged = bench(server).judge([plan_row("a")])["a"]
    assert (judged["kind"], judged["reason"]) == ("unscored", "transport")
    assert judged["raw"] == json.dumps(FLAGGED_BUT_RIGHT)


def test_contradictions_are_counted_apart_from_overrides_and_unscored(
    serve: Any, tmp_path: Path
) -> None:
    scripts = {"(settled)": [says(FLAGGED_BUT_RIGHT)], "(lost)": [says(NAMELESS)]}
    server = serve(by_content(scripts, Answer(RIGHT)))
    rows = [plan_row(name) for name in ("settled", "lost", "good", "fine")]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    spec = JudgeSpec(model=MODEL, api_base=server.address, retries=0)
    run = apbjudge.grade(path, judge=spec, out=tmp_path / "out")
    assert run.manifest["inconsistent"] == 1
    assert run.manifest["unscored"] == {"inconsistent": 1}
    assert (run.manifest["rows"], run.manifest["scored"]) == (4, 3)
    assert run.manifest["calls"] == len(server.requests) == 8
    assert run.unscored_fraction == 0.25
    figures = run.summary.groups[0].figures
    assert (figures["CR"].value, figures["CR"].n_items) == (2 / 3, 3)
    bounds = figures["CR bounds"]  # 2 of 4 if the lost row is wrong, 3 of 4 if it is right
    assert (bounds.value, bounds.method, bounds.n_items) == (None, "bounds", 4)
    assert bounds.note == "0.5000 to 0.7500, as unscored items would have come out"
    assert "\nCR bounds (holistic planner): 0.5000 to 0.7500, as" in summary_text(run.summary)
    gates = run.summary.gate("CR bounds >= 0.05", "CR bounds >= 0.5", at="low")
    assert [gate.passed for gate in gates] == [True, False]


def test_a_judge_that_does_as_it_is_asked_loses_no_row() -> None:
    """One that calls every plan wrong lost all rows as long as it was not asked for a code."""

    def obedient(request: Request) -> str:
        asked = str(request.messages[-1]["content"])
        return json.dumps(verdict("E4") if "set the code that fits best" in asked else NAMELESS)

    client = ScriptedClient(obedient)
    run = apbjudge.grade(map(plan_row, "abc"), judge=MODEL, client=client)
    assert (run.summary.scored, len(client.requests)) == (3, 6)
    assert "CR bounds" not in run.summary.groups[0].figures
