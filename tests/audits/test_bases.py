"""Bases: which plan of a case is taken as correct, and what is derived from it."""

from __future__ import annotations

from typing import Any

from apbjudge.audits.perturbations.bases import NO_PLAN, PROVEN, SOLVER, Base, find_bases
from apbjudge.judge import Task
from apbjudge.protocols import protocol_of
from apbjudge.records import Row

from . import cases

OTHER = cases.call("find_trains", "Only this.", town="Trieste", day="2026-06-04")


def said(*chain: dict[str, Any]) -> dict[str, Any]:
    return {"plan": "As said.", "tool_chain": list(chain)}


def task(**fields: Any) -> Task:
    item = Row(cases.plan_row(**fields), 1).to_item()
    protocol = protocol_of(item)
    return Task(item, protocol, protocol.rubric_for(item), (), b"", 0)


def only(tasks: list[Task], passed: Any = None) -> Base:
    (base,) = find_bases(tasks, passed).bases
    return base


def test_without_labels_the_reference_is_the_base() -> None:
    base = only([task(model_response=said(OTHER))])
    assert (base.origin, base.item.tested_model, base.name) == ("reference", SOLVER, "p1")
    assert [call.name for call in base.parts.calls] == [call["name"] for call in cases.CHAIN]
    assert base.item.prediction.plan == base.parts.plan


def test_a_passed_prediction_comes_first() -> None:
    base = only([task(model_response=said(OTHER))], {("p1", "m")})
    assert (base.origin, base.name) == ("label", "p1@m")
    assert [call.name for call in base.parts.calls] == ["find_trains"]
    assert base.truth.is_correct


def test_of_passed_predictions_another_way_comes_first() -> None:
    like = task(tested_model="like", model_response=said(*cases.CHAIN))
    other = task(tested_model="other", model_response=said(OTHER))
    base = only([like, other], {("p1", "like"), ("p1", "other")})
    assert base.item.tested_model == "other"


def test_what_is_left_out_is_counted() -> None:
    unread = task(id="a", tool_chain=None, plan=None, model_response="no plan")
    wrong = task(id="b", tool_chain=[cases.call("no_such")], tools=[*cases.TOOLS])
    missing = task(id="c", tool_chain=[cases.call("find_rooms")])
    bases = find_bases([unread, wrong, missing])
    assert bases.left_out == {NO_PLAN: 1, PROVEN: 1}
    assert [base.name for base in bases.bases] == ["b"]


def test_a_passed_prediction_with_a_proven_fault_yields_to_the_reference() -> None:
    base = only([task(model_response=said(cases.call("no_such")))], {("p1", "m")})
    assert base.origin == "reference"


def test_derived_variants_name_their_parents() -> None:
    base = only([task()])
    fault = base.derived("fault", "odd", what="w", truth=base.truth, reply=base.parts)
    shown = base.derived("shown", "again", what="w", truth=base.truth, parent=fault)
    assert (fault.name, fault.parent) == ("p1/odd", "p1/base")
    assert (shown.name, shown.parent) == ("p1/odd/again", "p1/odd")
    gone = base.derived("shown", "bare", what="w", truth=base.truth, case={"query": None})
    assert "query" not in gone.row
