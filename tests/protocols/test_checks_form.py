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
    "reply", ["", "   \n", "I would look for a train.", '{"plan": "x", "tool_chain": [', "42", "[]"]
)
def test_a_reply_without_usable_json_is_a_fault_of_form_and_of_nothing_else(reply: str) -> None:
    for row in (plan_row(reply), step_row(reply)):
        assert proven(row | DEMANDED) == FORMAT
        assert suspected(row | DEMANDED) == []


PLAN_FAULTS = {
    "chain is text": ({"plan": "p", "tool_chain": "find_trains"}, "tool_chain"),
    "chain is an object": ({"plan": "p", "tool_chain": {"name": "find_trains"}}, "tool_chain"),
    "call is text": ({"plan": "p", "tool_chain": ["find_trains"]}, "tool_chain[0]"),
    "call is null": ({"plan": "p", "tool_chain": [None]}, "tool_chain[0]"),
    "call without a name": ({"plan": "p", "tool_chain": [{"reason": "r"}]}, "tool_chain[0]"),
    "name is a number": ({"plan": "p", "tool_chain": [{"name": 5}]}, "tool_chain[0]"),
}


@pytest.mark.parametrize(("reply", "where"), PLAN_FAULTS.values(), ids=PLAN_FAULTS)
def test_a_broken_chain_is_a_fault_of_form_at_its_place(reply: Any, where: str) -> None:
    expected = [("E3", "format", where)]
    assert proven(plan_row(reply, **DEMANDED)) == expected
    assert expected[0] not in proven(plan_row(reply))
    assert expected[0] in suspected(plan_row(reply))


def _step(**changes: Any) -> dict[str, Any]:
    changed = step(FIND_OK) | changes
    return {name: value for name, value in changed.items() if value is not ...}


STEP_FAULTS = {
    "no thought": (_step(thought=...), "step[0]"),
    "no role": (_step(role=...), "step[0].role"),
    "another role": (_step(role="user"), "step[0].role"),
    "no tool_calls": (_step(tool_calls=...), "step[0]"),
    "tool_calls is an object": (_step(tool_calls={"name": "x"}), "step[0].tool_calls"),
    "call is text": (_step(tool_calls=["find_trains"]), "step[0].tool_calls[0]"),
    "call without a name": (
        _step(tool_calls=[{"function": {"arguments": {}}}]),
        "step[0].tool_calls[0]",
    ),
    "arguments are broken JSON": (
        _step(tool_calls=[{"function": {"name": "unlisted", "arguments": '{"a": '}}]),
        "step[0].tool_calls[0].arguments",
    ),
}


@pytest.mark.parametrize(("reply", "where"), STEP_FAULTS.values(), ids=STEP_FAULTS)
def test_a_broken_step_is_a_fault_of_form_at_its_place(reply: Any, where: str) -> None:
    assert ("E3", "format", where) in proven(step_row(reply, **DEMANDED))
    assert ("E3", "format", where) not in proven(step_row(reply))


READABLE = ("no thought", "no role", "another role", "no tool_calls")


@pytest.mark.parametrize("name", STEP_FAULTS)
def test_a_step_that_was_read_all_the_same_has_no_fault_where_no_form_was_demanded(
    name: str,
) -> None:
    reply, where = STEP_FAULTS[name]
    expected = ("E3", "format", where) in suspected(step_row(reply))
    assert expected is (name not in READABLE)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_exactly_k_steps_are_due(k: int, n: int) -> None:
    reply: Any = [step(FIND_OK) for _ in range(n)]
    assert proven(step_row(reply, k=k, **DEMANDED)) == ([] if n == k else FORMAT)
    assert proven(step_row(reply, k=k)) == []
    assert (FORMAT[0] in suspected(step_row(reply, k=k))) is (n != k)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_other_published_form_of_steps_counts_the_same(k: int) -> None:
    one = {"thought": "t", "action": "call", "tool": "find_trains", "arguments": FIND_OK[1]}
    for n, expected in ((k, []), (k + 1, FORMAT), (0, FORMAT)):
        assert proven(step_row({"predicted_steps": [one] * n}, k=k, **DEMANDED)) == expected
        assert proven(step_row({"predicted_steps": [one] * n}, k=k)) == []


@pytest.mark.parametrize(
    "reply",
    [
        {"plan": "", "tool_chain": []},
        {"plan": "  \n", "tool_chain": []},
        {"plan": None, "tool_chain": None},
        {"plan": [], "tool_chain": []},
        {"tool_chain": []},
        {"plan": ""},
    ],
)
def test_an_empty_plan_is_proven(reply: Any) -> None:
    assert proven(plan_row(reply)) == [("E2", "empty-plan", "tool_chain")]


def test_a_rejected_task_that_can_be_solved_is_proven() -> None:
    assert proven(plan_row(REJECT)) == [("E2", "empty-plan", "response")]


@pytest.mark.parametrize(
    "fields", [{}, {"tool_chain": []}, {"plan": "Ask the desk.", "tool_chain": []}]
)
def test_a_plan_in_words_is_fine_where_the_reference_has_no_call(fields: dict[str, Any]) -> None:
    row = plan_row(plan(text="Tell the traveller that it can't be done by ten."), **fields)
    assert proven(row) == suspected(row) == []


def test_a_plan_in_words_is_suspected_where_the_reference_has_calls() -> None:
    row = plan_row(plan(text="Look for a train."), tool_chain=[{"name": "find_trains"}])
    assert proven(row) == []
    assert suspected(row) == [("E2", "empty-plan", "tool_chain")]


REFERENCE = {"ground_truth_steps": [step(FIND_OK)]}


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


def test_a_step_without_call_and_word_is_proven_where_the_reference_calls() -> None:
    mute: Any = {"thought": "", "tool_calls": []}
    assert proven(step_row(mute, **REFERENCE)) == [("E2", "empty-plan", "response")]
    assert proven(step_row({**mute, "thought": "Wait."}, **REFERENCE)) == []
    assert proven(step_row(mute)) == []


@pytest.mark.parametrize(
    ("replies", "certainty"),
    [
        ([plan(("fly", {}))], "proven"),
        ([plan(("fly", {})), plan(("fly", {}), FIND_OK)], "proven"),  # in both, so in any
        ([plan(("fly", {})), plan(FIND_OK)], "suspected"),
        ([plan(FIND_OK), plan(("fly", {}))], "suspected"),
        ([json.loads(REJECT), plan(("fly", {}))], "suspected"),
        ([plan(("fly", {})), json.loads(REJECT)], "suspected"),
        ([[{"name": "fly"}], plan(FIND_OK)], "suspected"),
        (["I must REJECT this; else", plan(("fly", {}))], "suspected"),
        ([{"city": "Udine"}, [1], plan(("fly", {}))], "proven"),  # no other answers
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


def test_a_repeated_call_is_only_suspected_and_only_when_identical() -> None:
    again = ("find_trains", {"day": "2026-05-14", "origin": "Trieste"})
    other = ("find_trains", {"origin": "Trieste", "day": "2026-05-15"})
    row = plan_row(plan(FIND_OK, other, again))
    assert proven(row) == []
    assert suspected(row) == [("E4", "repeated-call", "tool_chain[2]")]


def _unsolvable(kind: str, reply: Any) -> dict[str, Any]:
    return plan_row(reply, split="holistic_unsolvable", unsolvable_type=kind)


STOPS = ("visual_missing", "tool_removal")
TALKS = ("contradictory_constraints", "information_missing")


BLIND = plan(("get_user_details", {}), ("find_vendor", {}), ("create_task", {}))
"""Names with words such as user, end and ask in them, none of which ends the task."""
LONE = plan(("handoff", {"message": "No picture is attached."}))
ENDS = {"ends": ["handoff"]}
DECLINED = json.dumps({"status": "REJECT", "reason": "No picture is attached."})


@pytest.mark.parametrize("kind", [*STOPS, *TALKS])
@pytest.mark.parametrize(
    ("reply", "fields", "is_proven"),
    [
        (BLIND, {}, True),
        (BLIND, ENDS, True),
        (BLIND, {"ends": []}, True),
        (BLIND, {"split": None}, False),  # nobody knows what ends the task
        (LONE, {}, False),  # the only call may be an ending that nobody named
        (LONE, {"ends": []}, True),
        (plan(FIND_OK), {"ends": ["Finish"]}, True),
        (f"I can't see it. Once I do:\n{json.dumps(BLIND)}", ENDS, False),
        (f"```json\n{json.dumps(BLIND)}\n```", ENDS, True),
        (f"{DECLINED}\nWith it, I would:\n{json.dumps(BLIND)}", ENDS, False),
        (f"{json.dumps(BLIND)}\nBut it is missing, so: {DECLINED}", ENDS, False),
        (f"{json.dumps(BLIND)} {json.dumps(plan(FIND_OK))}", ENDS, True),
        (f"{json.dumps(BLIND)} {json.dumps(plan())}", ENDS, False),
        (f"{json.dumps(BLIND)} {json.dumps(BLIND)}", ENDS, True),
        (BLIND | {"status": "REJECT"}, ENDS, False),
        (LONE | {"status": "REJECT", "reason": "No picture is attached."}, {}, False),
    ],
)
def test_carrying_on_is_proven_where_nothing_in_the_reply_can_be_a_stop(
    kind: str, reply: object, fields: dict[str, Any], is_proven: bool
) -> None:
    results = findings(_unsolvable(kind, reply) | fields)
    expected = "proven" if is_proven and kind in STOPS else "suspected"
    assert {(f.rule, f.certainty) for f in results} == {("carried-on", expected)}


@pytest.mark.parametrize("kind", [*STOPS, *TALKS])
@pytest.mark.parametrize("key", ["tool_chain", "tool_calls", "calls"])
def test_a_rejection_that_only_ends_the_task_is_left_to_the_judge(kind: str, key: str) -> None:
    reply = json.loads(REJECT) | {key: [{"name": "handoff"}]}
    assert findings(_unsolvable(kind, reply) | ENDS) == ()


@pytest.mark.parametrize("kind", [*STOPS, *TALKS])
@pytest.mark.parametrize(
    "reply",
    [
        json.loads(REJECT),
        plan(text="The picture is missing, so I stop here."),
        plan(("finish", {}), text="stop"),
        plan(("Finish", {"mode": "give_up"})),
        {"role": "assistant", "content": "I can't see a picture.", "tool_calls": []},
        "I can't see a picture. Could you send it again?",
    ],
)
def test_every_way_of_stopping_is_left_to_the_judge(kind: str, reply: Any) -> None:
    assert findings(_unsolvable(kind, reply)) == ()


SILENT = [
    plan(text=""),
    plan(text=" \n"),
    {"plan": None, "tool_chain": None},
    {"plan": "", "tool_chain": [], "notes": {}},
    " \n",
]


@pytest.mark.parametrize("kind", [*STOPS, *TALKS])
@pytest.mark.parametrize("reply", SILENT)
def test_a_reply_that_is_empty_altogether_says_nothing(kind: str, reply: Any) -> None:
    assert proven(_unsolvable(kind, reply)) == [(None, "says-nothing", "response")]


@pytest.mark.parametrize("kind", [*STOPS, *TALKS])
@pytest.mark.parametrize(
    "reply",
    [
        plan(text="") | {"question": "Which picture?"},
        plan(text="") | {"notes": ["The picture is missing."]},
        plan(text="") | {"confidence": 0.2},
        plan(text="") | {"status": "NEEDS_IMAGE"},
        "I can't see it. " + json.dumps(plan(text="")),
        "null",
    ],
)
def test_a_word_anywhere_is_left_to_the_judge(kind: str, reply: Any) -> None:
    assert findings(_unsolvable(kind, reply)) == ()


@pytest.mark.parametrize("kind", [*STOPS, *TALKS])
def test_a_bare_rejection_is_suspected_where_it_should_name_what_is_missing(kind: str) -> None:
    row = _unsolvable(kind, {"status": "REJECT"})
    assert proven(row) == []
    assert suspected(row) == ([(None, "says-nothing", "response")] if kind in STOPS else [])


@pytest.mark.parametrize("value", ["true", 1, 0, [], {}])
def test_format_demanded_is_true_or_false(value: Any) -> None:
    with pytest.raises(RowError, match="format_demanded"):
        findings(plan_row(plan(FIND_OK), format_demanded=value))


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (plan_row(REJECT), True),
        (plan_row(f"Sorry. {REJECT}"), True),
        (plan_row(REJECT, split="holistic_tool_extraneous", extraneous_tool_names=["x"]), True),
        (plan_row(plan(FIND_OK)), False),
        (plan_row("I can't help with that."), False),
        (plan_row(""), False),
        (
            plan_row(REJECT, split="holistic_unsolvable", unsolvable_type="tool_removal"),
            None,
        ),
        (step_row(REJECT), None),
    ],
)
def test_only_the_reject_form_on_a_solvable_plan_case_is_an_over_refusal(
    row: dict[str, Any], expected: bool | None
) -> None:
    assert over_refusal(read(row)) is expected
