"""Which call needs which: the sure ones and the possible ones."""

from __future__ import annotations

from typing import Any

import pytest

from apbjudge.audits.perturbations.parts import ReplyParts
from apbjudge.audits.perturbations.words import (
    is_lookup,
    possible_needs,
    sure_needs,
)
from apbjudge.records import Call, Step, Toolset
from apbjudge.records.tools import build_toolset

from . import cases

TOOLS: Toolset = build_toolset(list(cases.TOOLS), None, "tools")


def draft(*calls: tuple[str, dict[str, Any]]) -> ReplyParts:
    made = tuple(Step(calls=(Call(name, arguments),)) for name, arguments in calls)
    return ReplyParts(form="plan", steps=made)


ROOMS = ("find_rooms", {"house": "Villa Rosa", "day": "2026-06-04"})
TRAINS = ("find_trains", {"town": "Trieste", "day": "2026-06-04"})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("${find_rooms.items[0]}", [(2, {0})]),
        ("the id that find_rooms gives", [(2, {0})]),
        ("room from step 1", [(2, {0})]),
        ("trains of step 2", [(2, {1})]),
        ("the cheapest", []),
        ("step 7", []),
        ("Villa Rosa", []),
    ],
)
def test_named_sources_are_sure(value: str, expected: list[Any]) -> None:
    plan = draft(ROOMS, TRAINS, ("send_note", {"text": value}))
    assert [(need.call, set(need.on)) for need in sure_needs(plan, TOOLS)] == expected


def test_a_described_parameter_is_sure_unless_its_value_is_given() -> None:
    plan = draft(ROOMS, TRAINS, ("book_room", {"room_id": "R-71", "guests": 2}))
    assert [(need.call, set(need.on)) for need in sure_needs(plan, TOOLS)] == [(2, {0})]
    assert sure_needs(plan, TOOLS, case="Take R-71, please.") == ()


def test_described_values_may_come_from_like_calls_else_from_all() -> None:
    like = draft(ROOMS, TRAINS, ("send_note", {"text": "the cheapest room"}))
    assert possible_needs(like, TOOLS) == {(0, 2)}
    vague = draft(ROOMS, TRAINS, ("send_note", {"text": "whatever was said"}))
    assert possible_needs(vague, TOOLS) == {(0, 2), (1, 2)}


def test_an_action_may_matter_to_whatever_shares_its_values() -> None:
    plan = draft(("book_room", {"room_id": "R-71"}), ("find_rooms", {"house": "R-71"}))
    assert possible_needs(plan, TOOLS) == {(0, 1)}
    assert possible_needs(draft(ROOMS, TRAINS), TOOLS) == frozenset()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("find_rooms", True),
        ("get_order", True),
        ("LiteratureSearch", False),
        ("list_open_invoices", True),
        ("book_room", False),
        ("draft_letter", False),
        ("", False),
    ],
)
def test_lookups_are_told_by_their_first_word(name: str, *, expected: bool) -> None:
    assert is_lookup(name, None) is expected


def test_a_description_tells_where_the_name_does_not() -> None:
    tools = build_toolset([{"name": "tide_table", "description": "Shows high water."}], None, "t")
    assert is_lookup("tide_table", tools)
    assert not is_lookup("tide_table", None)


def test_a_description_in_another_script_may_need_what_comes_earlier() -> None:
    plan = draft(ROOMS, ("send_note", {"text": "第一步找到的房间"}))
    assert possible_needs(plan, TOOLS) == {(0, 1)}
