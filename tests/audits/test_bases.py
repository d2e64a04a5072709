"""Bases: which plan of a case is taken as correct, how it can be edited, which call needs which."""

from __future__ import annotations

from typing import Any

from apbjudge.audits.perturbations.bases import NO_PLAN, PROVEN, SOLVER, Base, find_bases
from apbjudge.audits.perturbations.parts import ReplyParts
from apbjudge.audits.perturbations.words import possible_needs, sure_needs
from apbjudge.judge import JudgeTask
from apbjudge.protocols import protocol_of
from apbjudge.records import Call, Row, Step
from apbjudge.records.tools import build_toolset

from . import cases

OTHER = cases.call("find_trains", "Only this.", town="Trieste", day="2026-06-04")


def said(*chain: dict[str, Any]) -> dict[str, Any]:
    return {"plan": "As said.", "tool_chain": list(chain)}


def task(**fields: Any) -> JudgeTask:
    item = Row(cases.plan_row(**fields), 1).to_item()
    protocol = protocol_of(item)
    return JudgeTask(item, protocol, protocol.rubric_for(item), (), b"", 0)


def only(tasks: list[JudgeTask], passed: Any = None) -> Base:
    (base,) = find_bases(tasks, passed).bases
    return base


def test_without_labels_the_reference_is_the_base() -> None:
    base = only([task(model_response=said(OTHER))])
    assert (base.origin, base.item.tested_model, base.name) == ("reference", SOLVER, "p1")
    assert [call.name for call in base.parts.calls] == [call["name"] for call in cases.CHAIN]
    assert base.item.prediction.plan == base.parts.plan


def test_a_passed_prediction_comes_first_unless_code_proves_a_fault() -> None:
    base = only([task(model_response=said(OTHER))], {("p1", "m")})
    assert (base.origin, base.name) == ("label", "p1@m")
    assert [call.name for call in base.parts.calls] == ["find_trains"]
    assert base.truth.is_correct
    like = task(tested_model="like", model_response=said(*cases.CHAIN))
    other = task(tested_model="other", model_response=said(OTHER))
    both = only([like, other], {("p1", "like"), ("p1", "other")})
    assert both.item.tested_model == "other"  # another way than the reference
    proven = only([task(model_response=said(cases.call("no_such")))], {("p1", "m")})
    assert proven.origin == "reference"


def test_what_is_left_out_is_counted() -> None:
    unread = task(id="a", tool_chain=None, plan=None, model_response="no plan")
    wrong = task(id="b", tool_chain=[cases.call("no_such")], tools=[*cases.TOOLS])
    missing = task(id="c", tool_chain=[cases.call("find_rooms")])
    bases = find_bases([unread, wrong, missing])
    assert bases.left_out == {NO_PLAN: 1, PROVEN: 1}
    assert [base.name for base in bases.bases] == ["b"]


# how it can be edited -----------------------------------------------------------------------------


def of_reference(row: dict[str, Any]) -> ReplyParts | None:
    return ReplyParts.of_reference(Row(row, 1).to_item())


def names(parts: ReplyParts | None) -> list[list[str | None]]:
    return [[call.name for call in step.calls] for step in parts.steps] if parts else []


def test_every_base_of_the_examples_reads_back_as_it_was_written() -> None:
    for base in cases.example_bases():
        again = ReplyParts.of_prediction(base.item)
        assert again is not None, base.name
        assert again.value == base.parts.value, base.name
        assert not [f for f in base.findings(base.variant) if f.certainty == "proven"], base.name
    for text in ("no plan at all", "", '{"plan": ', "[1, 2]"):
        assert ReplyParts.of_prediction(task(model_response=text).item) is None


def test_of_reference_steps_as_many_of_the_assistants_as_were_asked_for_are_taken() -> None:
    find, tool_said = cases.message("find_rooms"), {"role": "tool", "content": "three rooms"}
    steps = [find, tool_said, cases.message("find_trains")]
    for horizon, expected in ((1, [["find_rooms"]]), (2, [["find_rooms"], ["find_trains"]])):
        parts = of_reference(cases.steps_row(*steps, prediction_horizon=horizon))
        assert names(parts) == expected
    assert of_reference(cases.steps_row(*steps, prediction_horizon=3)) is None


def test_a_call_of_a_step_is_replaced_within_its_step() -> None:
    double = cases.message("find_rooms", "Both.")
    double["tool_calls"] += cases.message("find_trains")["tool_calls"]
    parts = of_reference(cases.steps_row(double, cases.message("send_note", "Then.")))
    assert parts is not None
    new = Call(name="new", arguments={})
    assert names(parts.with_calls(1, new)) == [["find_rooms", "new"], ["send_note"]]
    assert names(parts.with_calls(2, new, new)) == [["find_rooms", "find_trains"], ["new", "new"]]
    assert parts.with_calls(2).steps[1].thought == "Then."


# which call needs which ---------------------------------------------------------------------------

TOOLS = build_toolset(list(cases.TOOLS), None, "tools")
ROOMS = ("find_rooms", {"house": "Villa Rosa", "day": "2026-06-04"})
TRAINS = ("find_trains", {"town": "Trieste", "day": "2026-06-04"})


def draft(*calls: tuple[str, dict[str, Any]]) -> ReplyParts:
    made = tuple(Step(calls=(Call(name, arguments),)) for name, arguments in calls)
    return ReplyParts(form="plan", steps=made)


def noted(text: str) -> ReplyParts:
    return draft(ROOMS, TRAINS, ("send_note", {"text": text}))


def test_named_sources_and_described_parameters_are_sure() -> None:
    for value, expected in (
        ("${find_rooms.items[0]}", [(2, {0})]),
        ("the id that find_rooms gives", [(2, {0})]),
        ("trains of step 2", [(2, {1})]),
        ("step 7", []),
        ("Villa Rosa", []),
    ):
        assert [(need.call, set(need.on)) for need in sure_needs(noted(value), TOOLS)] == expected
    plan = draft(ROOMS, TRAINS, ("book_room", {"room_id": "R-71", "guests": 2}))
    assert [(need.call, set(need.on)) for need in sure_needs(plan, TOOLS)] == [(2, {0})]
    assert sure_needs(plan, TOOLS, case="Take R-71, please.") == ()


def test_what_may_be_needed() -> None:
    assert possible_needs(noted("the cheapest room"), TOOLS) == {(0, 2)}
    assert possible_needs(noted("whatever was said"), TOOLS) == {(0, 2), (1, 2)}
    another_script = draft(ROOMS, ("send_note", {"text": "第一步找到的房间"}))
    assert possible_needs(another_script, TOOLS) == {(0, 1)}
    action = draft(("book_room", {"room_id": "R-71"}), ("find_rooms", {"house": "R-71"}))
    assert possible_needs(action, TOOLS) == {(0, 1)}
    assert possible_needs(draft(ROOMS, TRAINS), TOOLS) == frozenset()
