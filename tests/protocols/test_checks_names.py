"""Exact names: unknown tools, distractors, the broken tool, categories and costs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.protocols import plan_cost, uses_distractor
from apbjudge.protocols.checks.names import category
from tests.support.rows import (
    FIND,
    FIND_OK,
    MAIL,
    MAIL_OK,
    SEAT,
    SEAT_OK,
    TOOLS,
    findings,
    plan,
    plan_row,
    proven,
    read,
    step,
    step_row,
    tool,
)

UNKNOWN_PLAN = [("E6", "unknown-tool", "tool_chain[1]")]
UNKNOWN_STEP = [("E6", "unknown-tool", "step[0].tool_calls[0]")]


@pytest.mark.parametrize(
    "name",
    [
        "Reserve_Seat",
        "reserve-seat",
        "reserve_seat ",
        "functions.reserve_seat",
        "reserve_seat\u200b",
        "reserve_ſeat",
        "hold_table",
    ],
)
def test_a_name_that_is_not_letter_by_letter_in_the_list_is_unknown(name: str) -> None:
    call = (name, {"offer_id": "RJ-77"})
    assert proven(plan_row(plan(FIND_OK, call))) == UNKNOWN_PLAN
    assert proven(step_row(step(call))) == UNKNOWN_STEP


TOOL_CALLED_BEFORE = {
    "openai": {"role": "assistant", "tool_calls": [{"function": {"name": "hold_table"}}]},
    "flat": {"role": "assistant", "tool_calls": [{"name": "hold_table", "arguments": {}}]},
    "alternative": {"thought": "t", "tool": "hold_table", "arguments": {}},
    "tool message": {"role": "tool", "name": "hold_table", "content": "held"},
    "function call": {"role": "assistant", "function_call": {"name": "hold_table"}},
}


@pytest.mark.parametrize("message", TOOL_CALLED_BEFORE.values(), ids=TOOL_CALLED_BEFORE)
def test_a_tool_that_an_earlier_step_called_exists(message: dict[str, Any]) -> None:
    row = step_row(step(("hold_table", {})), trajectory_prefix=[message])
    assert proven(row) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": None},
        {"tool_chain": [{"name": "hold_table"}]},
        {"tool_names": ["find_trains", "hold_table"]},
        {"tools": None, "tool_names": ["hold_table"]},
        {"tools": {"hold_table": {"description": "holds"}}},
        {"tools": [{"tool_name": "hold_table"}]},
        {"tools": [{"type": "function", "function": {"name": "hold_table"}}]},
        {"tools": [], "tool_chain": [{"name": "anything"}]},
    ],
)
def test_a_name_known_from_anywhere_in_the_row_is_not_unknown(fields: dict[str, Any]) -> None:
    assert proven(plan_row(plan(("hold_table", {})), **fields)) == []


def test_a_distractor_is_an_e5_where_it_is_called_and_nothing_else() -> None:
    row = plan_row(
        plan(FIND_OK, MAIL_OK),
        split="holistic_tool_extraneous",
        extraneous_tool_names=["send_mail", "paint"],
    )
    assert proven(row) == [("E5", "distractor", "tool_chain[1]")]
    assert uses_distractor(read(row)) is True


@pytest.mark.parametrize(
    ("listed", "used"), [(["paint"], False), (["Send_Mail"], False), ([], None)]
)
def test_no_distractor_is_used_unless_its_exact_name_is_called(
    listed: list[str], used: bool | None
) -> None:
    row = plan_row(
        plan(FIND_OK, MAIL_OK), split="holistic_tool_extraneous", extraneous_tool_names=listed
    )
    assert proven(row) == []
    assert uses_distractor(read(row)) is used


def _broken(*calls: tuple[str, Any], **fields: Any) -> dict[str, Any]:
    condition = {
        "split": "step_wise_tool_broken",
        "broken_tool_name": "find_trains",
        "replacement_tool": {"name": "reserve_seat"},
    }
    return step_row(step(*calls), **condition | fields)


BROKEN_CALL = ("find_trains", {"origin": "Udine", "day": "2026-05-15"})
STRANGER = ("hold_table", {})
CATEGORIES = {
    "replacement": ([SEAT_OK], 1),
    "replacement without its arguments": ([("reserve_seat", {})], 1),
    "replacement after another tool": ([MAIL_OK, SEAT_OK], 1),
    "another known tool is for a judge": ([MAIL_OK], None),
    "retry": ([BROKEN_CALL], 3),
    "retry beside the replacement": ([SEAT_OK, BROKEN_CALL], 3),
    "retry beside an unknown tool": ([STRANGER, BROKEN_CALL], 3),
    "unknown tool": ([STRANGER], 5),
    "unknown tool beside the replacement": ([SEAT_OK, STRANGER], 5),
    "replacement in another letter case": ([("Reserve_Seat", {"offer_id": "1"})], 5),
    "broken tool in another letter case": ([("Find_Trains", {})], 5),
    "no call": ([], None),
}


@pytest.mark.parametrize(("calls", "expected"), CATEGORIES.values(), ids=CATEGORIES)
def test_a_category_follows_from_exact_names(calls: list[Any], expected: int | None) -> None:
    assert category(read(_broken(*calls))) == expected


def test_an_explicit_rejection_is_category_4() -> None:
    row = _broken(model_response='{"status": "REJECT", "reason": "it is down"}')
    assert category(read(row)) == 4
    assert proven(row) == [(None, "call-due", "response")]


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([BROKEN_CALL], [(None, "retry-broken-tool", "step[0].tool_calls[0]")]),
        ([STRANGER], [(None, "unknown-tool", "step[0].tool_calls[0]")]),
        ([], [(None, "call-due", "response")]),
        ([("send_mail", {"colour": 1})], []),
        ([SEAT_OK], []),
    ],
)
def test_tool_broken_findings_have_no_code_and_leave_arguments_to_the_judge(
    calls: list[Any], expected: list[Any]
) -> None:
    assert proven(_broken(*calls)) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("I give up.", [(None, "format", "response")]),
        (step(SEAT_OK) | {"role": "ai"}, []),
        ([step(SEAT_OK), step(MAIL_OK)], []),
    ],
)
def test_tool_broken_is_hard_on_unreadable_replies_only(reply: object, expected: Any) -> None:
    text = reply if isinstance(reply, str) else json.dumps(reply)
    assert proven(_broken(model_response=text, format_demanded=True)) == expected
    assert proven(_broken(model_response=text)) == []


def _priced(*costs: float | None) -> list[dict[str, Any]]:
    pairs = zip((FIND, SEAT, MAIL), costs, strict=True)
    return [spec | ({"cost": cost} if cost is not None else {}) for spec, cost in pairs]


COSTS = {
    "sum": (_priced(2, 3, 5), [FIND_OK, SEAT_OK], 5.0),
    "each call counts": (_priced(2, 3, 5), [FIND_OK, FIND_OK, FIND_OK], 6.0),
    "free tools": (_priced(0, 3, 5), [FIND_OK], 0.0),
    "fractions": (_priced(0.5, 0.25, 5), [FIND_OK, SEAT_OK], 0.75),
    "no call": (_priced(2, 3, 5), [], 0.0),
    "unknown tool": (_priced(2, 3, 5), [FIND_OK, ("hold_table", {})], None),
    "one tool without cost": (_priced(2, None, 5), [FIND_OK], None),
    "no costs": (TOOLS, [FIND_OK], None),
    "no tools": (None, [FIND_OK], None),
    "inner function form": (
        [{"type": "function", "cost": 4, "function": tool("find_trains")}],
        [FIND_OK],
        4.0,
    ),
}


@pytest.mark.parametrize(("tools", "calls", "cost"), COSTS.values(), ids=COSTS)
def test_the_cost_of_a_plan_is_the_sum_over_its_calls(
    tools: Any, calls: list[Any], cost: float | None
) -> None:
    assert plan_cost(read(plan_row(plan(*calls), tools=tools))) == cost


class Watched(str):
    """A name that counts how often it is compared or changed to small letters."""

    __slots__ = ()
    looks = 0

    def lower(self) -> str:
        Watched.looks += 1
        return super().lower()

    def __eq__(self, other: object) -> bool:
        Watched.looks += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize("form", ["plan", "steps"])
def test_looking_for_distractors_takes_work_that_grows_with_calls_not_their_product(
    form: str,
) -> None:
    names = [Watched(f"unused_{n}") for n in range(500)]
    calls = [("find_trains", {"origin": str(n), "day": "x"}) for n in range(500)]
    if form == "plan":
        row = plan_row(plan(*calls), split="holistic_tool_extraneous", extraneous_tool_names=names)
    else:
        row = step_row(step(*calls), split="step_wise_tool_extraneous", extraneous_tool_names=names)
    Watched.looks = 0
    assert proven(row) == []
    assert uses_distractor(read(row)) is False
    assert Watched.looks < 10 * 500


@given(
    names=st.lists(st.text("aAbBſsS_", min_size=1, max_size=3), max_size=6, unique=True),
    called=st.text("aAbBſsS_", min_size=1, max_size=3),
)
def test_the_near_name_is_one_that_differs_in_letter_case_only(
    names: list[str], called: str
) -> None:
    row = plan_row(plan((called, {})), tools=None, tool_names=names)
    near = sorted(name for name in names if name.lower() == called.lower())
    messages = [f.message for f in findings(row) if f.rule == "unknown-tool"]
    if not names or called in names:
        assert len(messages) == (0 if called in names else 1)
    else:
        hint = f" (the list has {near[0]!r})" if near else ""
        assert messages == [f"no tool named {called!r} in the list{hint}"]
