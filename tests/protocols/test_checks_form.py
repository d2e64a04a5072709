"""The required form, empty plans, calls that were due, and what is only hinted at."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apbjudge.errors import RowError
from apbjudge.protocols import over_refusal
from tests.support.rows import (
    FIND_OK,
    findings,
    plan,
    plan_row,
    proven,
    read,
    step,
    step_row,
    suspected,
)

FORMAT = [("E3", "format", "response")]
DEMANDED = {"format_demanded": True}
REJECT = '{"status": "REJECT", "reason": "no seats are sold"}'


@pytest.mark.parametrize(
    "reply", ["", "I would look for a train.", '{"plan": "x", "tool_chain": [', "42"]
)
def test_a_reply_without_usable_json_is_a_fault_of_form_and_of_nothing_else(reply: str) -> None:
    for row in (plan_row(reply), step_row(reply)):
        assert proven(row | DEMANDED) == FORMAT
        assert suspected(row | DEMANDED) == []


def _step(**changes: Any) -> dict[str, Any]:
    changed = step(FIND_OK) | changes
    return step_row({name: value for name, value in changed.items() if value is not ...})


UNNAMED = {"function": {"arguments": {}}}
UNREAD = {"function": {"name": "unlisted", "arguments": '{"a": '}}
BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "chain is text": (plan_row({"plan": "p", "tool_chain": "find_trains"}), "tool_chain"),
    "call is null": (plan_row({"plan": "p", "tool_chain": [None]}), "tool_chain[0]"),
    "name is a number": (plan_row({"plan": "p", "tool_chain": [{"name": 5}]}), "tool_chain[0]"),
    "no thought": (_step(thought=...), "step[0]"),
    "another role": (_step(role="user"), "step[0].role"),
    "tool_calls is an object": (_step(tool_calls={"name": "x"}), "step[0].tool_calls"),
    "call without a name": (_step(tool_calls=[UNNAMED]), "step[0].tool_calls[0]"),
    "broken arguments": (_step(tool_calls=[UNREAD]), "step[0].tool_calls[0].arguments"),
}


@pytest.mark.parametrize(("row", "where"), BROKEN.values(), ids=BROKEN)
def test_a_broken_reply_is_a_fault_of_form_at_its_place(row: dict[str, Any], where: str) -> None:
    fault = ("E3", "format", where)
    assert fault in proven(row | DEMANDED)
    assert fault not in proven(row)
    # where no form was demanded, a step that could be read all the same has no fault
    is_read = where in ("step[0]", "step[0].role")
    assert (fault in suspected(row)) is not is_read


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_exactly_k_steps_are_due(k: int, n: int) -> None:
    one = {"thought": "t", "action": "call", "tool": "find_trains", "arguments": FIND_OK[1]}
    expected = [] if n == k else FORMAT
    reply: Any = [step(FIND_OK) for _ in range(n)]
    for written in (reply, {"predicted_steps": [one] * n}):
        assert proven(step_row(written, k=k, **DEMANDED)) == expected
        assert proven(step_row(written, k=k)) == []
    assert (FORMAT[0] in suspected(step_row(reply, k=k))) is (n != k)


REFERENCE = {"ground_truth_steps": [step(FIND_OK)]}
WORDS = plan(text="Tell the traveller that it can't be done by ten.")
MUTE: Any = {"thought": "", "tool_calls": []}
AGAIN = ("find_trains", {"day": "2026-05-14", "origin": "Trieste"})
OTHER_DAY = ("find_trains", {"origin": "Trieste", "day": "2026-05-15"})
FOUND: dict[str, tuple[dict[str, Any], str]] = {
    "empty plan": (plan_row({"plan": "", "tool_chain": []}), "proven E2 empty-plan tool_chain"),
    "null": (plan_row({"plan": None, "tool_chain": None}), "proven E2 empty-plan tool_chain"),
    "solvable and rejected": (plan_row(REJECT), "proven E2 empty-plan response"),
    "words": (plan_row(WORDS), ""),
    "words as in the reference": (plan_row(WORDS, plan="Ask the desk.", tool_chain=[]), ""),
    "words where the reference has calls": (
        plan_row(WORDS, tool_chain=[{"name": "find_trains"}]),
        "suspected E2 empty-plan tool_chain",
    ),
    "mute step": (step_row(MUTE), ""),
    "mute step where the reference calls": (
        step_row(MUTE, **REFERENCE),
        "proven E2 empty-plan response",
    ),
    "identical call": (
        plan_row(plan(FIND_OK, OTHER_DAY, AGAIN)),
        "suspected E4 repeated-call tool_chain[2]",
    ),
}


@pytest.mark.parametrize(("row", "expected"), FOUND.values(), ids=FOUND)
def test_what_is_empty_or_twice_is_found(row: dict[str, Any], expected: str) -> None:
    found = [f"{f.certainty} {f.code} {f.rule} {f.where}" for f in findings(row)]
    assert found == ([expected] if expected else [])


@pytest.mark.parametrize("reply", [step(thought="Done."), json.loads(REJECT)])
@pytest.mark.parametrize(
    ("rubric", "fields", "certainty"),
    [
        ("apb-step-wise@1", {}, None),
        ("apb-step-wise@1", REFERENCE, "suspected"),
        ("apb-step-wise-strict@1", {}, None),
        ("apb-step-wise-strict@1", REFERENCE, "proven"),
    ],
)
def test_a_step_without_a_call_is_proven_only_where_the_rubric_says_one_was_due(
    reply: Any, rubric: str, fields: dict[str, Any], certainty: str | None
) -> None:
    results = findings(step_row(reply, **fields), rubric=rubric)
    given_up = reply.get("status") == "REJECT"
    expected = certainty or ("suspected" if given_up else None)
    assert [(f.code, f.rule, f.certainty) for f in results] == (
        [("E2", "call-due", expected)] if expected else []
    )


@pytest.mark.parametrize(
    ("replies", "certainty"),
    [
        ([plan(("fly", {}))], "proven"),
        ([plan(("fly", {})), plan(("fly", {}), FIND_OK)], "proven"),  # in both, so in any
        ([plan(("fly", {})), plan(FIND_OK)], "suspected"),
        ([json.loads(REJECT), plan(("fly", {}))], "suspected"),
        ([[{"name": "fly"}], plan(FIND_OK)], "suspected"),
        (["I must REJECT this; else", plan(("fly", {}))], "suspected"),
        ([plan(("fly", {}))] * 3, "proven"),
        ([plan(("fly", {}))] * 30, "suspected"),  # more than are looked at
    ],
)
def test_a_fault_is_proven_where_every_reading_of_the_reply_has_it(
    replies: list[Any], certainty: str
) -> None:
    text = "\nor:\n".join(r if isinstance(r, str) else json.dumps(r) for r in replies)
    row = plan_row(text)
    of_tool = [f for f in findings(row) if f.rule == "unknown-tool"]
    assert [f.certainty for f in of_tool] == [certainty]
    assert over_refusal(read(plan_row(text))) in (True, False)


def _unsolvable(kind: str, reply: Any) -> dict[str, Any]:
    return plan_row(reply, split="holistic_unsolvable", unsolvable_type=kind)


STOPS = ("visual_missing", "tool_removal")
KINDS = (*STOPS, "contradictory_constraints", "information_missing")


BLIND = plan(("get_user_details", {}), ("find_vendor", {}), ("create_task", {}))
"""Names with words such as user, end and ask in them, none of which ends the task."""
LONE = plan(("handoff", {"message": "No picture is attached."}))
ENDS = {"ends": ["handoff"]}
DECLINED = json.dumps({"status": "REJECT", "reason": "No picture is attached."})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("reply", "fields", "is_proven"),
    [
        (BLIND, {}, True),
        (BLIND, ENDS, True),
        (BLIND, {"split": None}, False),  # nobody knows what ends the task
        (LONE, {}, False),  # the only call may be an ending that nobody named
        (plan(FIND_OK), {"ends": ["Finish"]}, True),
        (f"I can't see it. Once I do:\n{json.dumps(BLIND)}", ENDS, False),
        (f"```json\n{json.dumps(BLIND)}\n```", ENDS, True),
        (f"{DECLINED}\nWith it, I would:\n{json.dumps(BLIND)}", ENDS, False),
        (f"{json.dumps(BLIND)} {json.dumps(plan(FIND_OK))}", ENDS, True),
        (f"{json.dumps(BLIND)} {json.dumps(plan())}", ENDS, False),
        (BLIND | {"status": "REJECT"}, ENDS, False),
    ],
)
def test_carrying_on_is_proven_where_nothing_in_the_reply_can_be_a_stop(
    kind: str, reply: object, fields: dict[str, Any], is_proven: bool
) -> None:
    results = findings(_unsolvable(kind, reply) | fields)
    expected = "proven" if is_proven and kind in STOPS else "suspected"
    assert {(f.rule, f.certainty) for f in results} == {("carried-on", expected)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "reply",
    [
        *(json.loads(REJECT) | {key: [{"name": "handoff"}]} for key in ("tool_chain", "calls")),
        json.loads(REJECT),
        plan(text="The picture is missing, so I stop here."),
        plan(("handoff", {}), text="stop"),
        "I can't see a picture. Could you send it again?",
        plan(text="") | {"question": "Which picture?"},
        plan(text="") | {"status": "NEEDS_IMAGE"},
        "I can't see it. " + json.dumps(plan(text="")),
        "null",
    ],
)
def test_every_way_of_stopping_and_a_word_anywhere_are_left_to_the_judge(
    kind: str, reply: Any
) -> None:
    assert findings(_unsolvable(kind, reply) | ENDS) == ()


SILENT = [{"plan": "", "tool_chain": [], "notes": {}}, " \n"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reply", SILENT)
def test_a_reply_that_is_empty_altogether_says_nothing(kind: str, reply: Any) -> None:
    assert proven(_unsolvable(kind, reply)) == [(None, "says-nothing", "response")]
    bare = _unsolvable(kind, {"status": "REJECT"})
    assert proven(bare) == []
    assert suspected(bare) == ([(None, "says-nothing", "response")] if kind in STOPS else [])


def test_format_demanded_is_true_or_false() -> None:
    stated, in_a_cell = (plan_row(REJECT, format_demanded=of) for of in (True, "True"))
    assert findings(in_a_cell) == findings(stated)
    with pytest.raises(RowError, match="format_demanded"):
        findings(plan_row(plan(FIND_OK), format_demanded="maybe"))


def test_only_the_reject_form_on_a_solvable_plan_case_is_an_over_refusal() -> None:
    assert over_refusal(read(plan_row(REJECT))) is True
    for reply in (plan(FIND_OK), ""):
        assert over_refusal(read(plan_row(reply))) is False
    for row in (_unsolvable("tool_removal", REJECT), step_row(REJECT)):
        assert over_refusal(read(row)) is None
