"""What the reference does too is suspected at most, in every protocol that has a reference."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.protocols import get_protocol
from apbjudge.protocols.prompts import PromptMaker
from apbjudge.rubrics import load_rubric
from tests.support.rows import (
    FIND_OK,
    MAIL_OK,
    findings,
    plan,
    plan_row,
    proven,
    read,
    step,
    step_row,
    suspected,
)

WRONG_CALLS: dict[str, tuple[str, Any]] = {
    "unknown": ("find_trains", {**FIND_OK[1], "hue": "red"}),
    "wrong type": ("reserve_seat", {"offer_id": 7}),
    "before it is made": ("reserve_seat", {"offer_id": "$find_trains.id"}),
    "unknown tool": ("hold_table", {}),
}


@pytest.mark.parametrize("call", WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_a_reply_equal_to_the_reference_is_never_proven_wrong(call: tuple[str, Any]) -> None:
    reply = step(call)
    alone = proven(step_row(reply, ground_truth_steps=[step(FIND_OK)]))
    spared = step_row(reply, ground_truth_steps=[reply])
    assert alone
    assert proven(spared) == []
    if alone[0][0] == "E5":
        assert suspected(spared) == alone
        messages = [finding.message for finding in findings(spared)]
        assert all(message.endswith("; the reference does the same") for message in messages)
    chain = plan(call, MAIL_OK)
    assert proven(plan_row(chain, tool_chain=chain["tool_chain"])) == []


SAME = {
    "another value": ({"seats": "2"}, {"seats": "three"}, True),
    "another parameter": ({"seats": "2"}, {"travel_class": 1}, False),
    "another unknown name": ({"hue": 1}, {"colour": 1}, False),
    "the same unknown name": ({"hue": 1}, {"hue": "red"}, True),
}


@pytest.mark.parametrize(("theirs", "ours", "is_spared"), SAME.values(), ids=SAME)
def test_a_fault_is_shared_by_tool_place_and_kind(
    theirs: dict[str, Any], ours: dict[str, Any], is_spared: bool
) -> None:
    reference = step(("reserve_seat", {"offer_id": "a", **theirs}))
    reply = step(("reserve_seat", {"offer_id": "b", **ours}))
    row = step_row(reply, ground_truth_steps=[reference])
    assert (proven(row) == []) is is_spared


def test_a_distractor_that_the_reference_calls_is_only_suspected() -> None:
    fields = {"extraneous_tool_names": ["send_mail"], "split": "step_wise_tool_extraneous"}
    row = step_row(step(MAIL_OK), **fields, ground_truth_steps=[step(MAIL_OK)])
    assert proven(row) == []
    assert [rule for _, rule, _ in suspected(row)] == ["distractor"]


@given(data=st.data())
def test_no_reply_equal_to_its_reference_is_proven_wrong(data: st.DataObject) -> None:
    words = st.sampled_from(["find_trains", "reserve_seat", "send_mail", "hold_table"])
    names = st.sampled_from(["origin", "day", "offer_id", "seats", "passenger", "hue"])
    values = st.sampled_from([1, "x", None, [1], {"name": 1}, "$send_mail.id", "PREVIOUS_RESULT"])
    arguments = st.dictionaries(names, values, max_size=4)
    calls = data.draw(st.lists(st.tuples(words, arguments), min_size=1))
    steps = [step(call) for call in calls][:3]
    assert proven(step_row(steps, k=len(steps), ground_truth_steps=steps)) == []
    chain = plan(*calls)
    assert proven(plan_row(chain, plan=chain["plan"], tool_chain=chain["tool_chain"])) == []


def test_a_blind_judge_learns_nothing_of_the_reference_from_facts() -> None:
    reply = step(("find_trains", {"origin": "Udine"}), ("reserve_seat", {"offer_id": 7}))
    rubric = load_rubric("apb-step-wise@1")
    texts: list[str] = []
    for call in (FIND_OK, ("reserve_seat", {"offer_id": 8})):
        row = step_row(reply, ground_truth_steps=[step(call)])
        item = read(row)
        results = get_protocol("step-wise").find(item, rubric)
        prompt = PromptMaker(blind=True).make(item, rubric, findings=results)
        texts.append(json.dumps(prompt.messages()))
    assert all("reference does" not in text for text in texts)
    assert texts[0].count("E5, step") == texts[1].count("E5, step") + 1
