"""Exact names: unknown tools, distractors, the broken tool, categories and costs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apbjudge.errors import shorten
from apbjudge.protocols import uses_distractor
from apbjudge.protocols.checks.names import category
from tests.support.rows import (
    FIND_OK,
    MAIL_OK,
    SEAT_OK,
    findings,
    plan,
    plan_row,
    proven,
    read,
    step,
    step_row,
)

UNKNOWN_PLAN = [("E6", "unknown-tool", "tool_chain[1]")]
UNKNOWN_STEP = [("E6", "unknown-tool", "step[0].tool_calls[0]")]


@pytest.mark.parametrize(
    "name", ["Reserve_Seat", "reserve_seat\u200b", "reserve_ſeat", "hold_table"]
)
def test_a_name_that_is_not_letter_by_letter_in_the_list_is_unknown(name: str) -> None:
    call = (name, {"offer_id": "RJ-77"})
    assert proven(plan_row(plan(FIND_OK, call))) == UNKNOWN_PLAN
    assert proven(step_row(step(call))) == UNKNOWN_STEP
    (found,) = findings(step_row(step(call)))
    hint = " (the list has 'reserve_seat')" if name == "Reserve_Seat" else ""
    assert found.message == f"no tool named {shorten(name)} in the list{hint}"


CALLED_BEFORE = [
    {"role": "assistant", "tool_calls": [{"function": {"name": "hold_table"}}]},
    {"thought": "t", "tool": "hold_table", "arguments": {}},
    {"role": "tool", "name": "hold_table", "content": "held"},
]
KNOWN = [
    *(step_row(step(("hold_table", {})), trajectory_prefix=[done]) for done in CALLED_BEFORE),
    plan_row(plan(("hold_table", {})), tools=None),
    plan_row(plan(("hold_table", {})), tool_chain=[{"name": "hold_table"}]),
    plan_row(plan(("hold_table", {})), tools=None, tool_names=["hold_table"]),
    plan_row(plan(("hold_table", {})), tools=[], tool_chain=[{"name": "anything"}]),
]


@pytest.mark.parametrize("row", KNOWN)
def test_a_name_known_from_anywhere_in_the_row_is_not_unknown(row: dict[str, Any]) -> None:
    assert proven(row) == []


@pytest.mark.parametrize(
    ("listed", "used"),
    [(["send_mail", "paint"], True), (["paint"], False), (["Send_Mail"], False), ([], None)],
)
def test_a_distractor_is_an_e5_where_its_exact_name_is_called(
    listed: list[str], used: bool | None
) -> None:
    fields = {"split": "holistic_tool_extraneous", "extraneous_tool_names": listed}
    row = plan_row(plan(FIND_OK, MAIL_OK), **fields)
    assert proven(row) == ([("E5", "distractor", "tool_chain[1]")] if used else [])
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
RETRIED = [(None, "retry-broken-tool", "step[0].tool_calls[0]")]
UNKNOWN = [(None, "unknown-tool", "step[0].tool_calls[0]")]
NO_CALL = [(None, "call-due", "response")]
BROKEN: dict[str, tuple[dict[str, Any], int | None, list[Any]]] = {
    "replacement after another tool": (_broken(MAIL_OK, SEAT_OK), 1, []),
    "another known tool is for a judge": (_broken(MAIL_OK), None, []),
    "retry as in the reference": (
        _broken(BROKEN_CALL, ground_truth_steps=[step(BROKEN_CALL)]),
        3,
        RETRIED,
    ),
    "retry before the replacement": (_broken(BROKEN_CALL, SEAT_OK), 3, RETRIED),
    "unknown tool before the replacement": (_broken(STRANGER, SEAT_OK), 5, UNKNOWN),
    "no call": (_broken(), None, NO_CALL),
    "rejected": (_broken(model_response='{"status": "REJECT", "reason": "down"}'), 4, NO_CALL),
    "what ends the task, listed or not": (_broken(("Finish", {"give_up": True})), None, []),
    "what the case says ends it": (_broken(("stop_here", {}), ends=["stop_here"]), None, []),
    "an ending that the case does not state": (_broken(("Finish", {}), ends=[]), 5, UNKNOWN),
    "an ending beside the replacement": (_broken(SEAT_OK, ("Finish", {})), 1, []),
    "an ending beside an unknown tool": (
        _broken(STRANGER, ("Finish", {})),
        5,
        UNKNOWN,
    ),
    "arguments are for the judge": (_broken(("send_mail", {"colour": 1})), None, []),
}


@pytest.mark.parametrize(("row", "expected", "found"), BROKEN.values(), ids=BROKEN)
def test_a_category_and_findings_without_code_follow_from_exact_names(
    row: dict[str, Any], expected: int | None, found: list[Any]
) -> None:
    assert category(read(row)) == expected
    assert proven(row) == found


def test_tool_broken_is_hard_on_unreadable_replies_only() -> None:
    for reply, expected in (
        ("I give up.", [(None, "format", "response")]),
        (json.dumps(step(SEAT_OK) | {"role": "ai"}), []),
    ):
        assert proven(_broken(model_response=reply, format_demanded=True)) == expected
        assert proven(_broken(model_response=reply)) == []
