"""Replies that can be edited: read from references and predictions, written down again."""

from __future__ import annotations

from typing import Any

import pytest

from apbjudge.audits.perturbations.parts import ReplyParts
from apbjudge.records import Call, Item, Row

from .cases import call, example_bases, message, plan_row, steps_row

STEPS = [message("find_rooms", "First.", day="d", house="h"), message("find_trains", "Then.")]


def item_of(row: dict[str, Any]) -> Item:
    return Row(row, 1).to_item()


def steps_item(*steps: dict[str, Any], **fields: Any) -> Item:
    return item_of(steps_row(*steps, **fields))


def names(parts: ReplyParts) -> list[str | None]:
    return [one.name for one in parts.calls]


@pytest.mark.parametrize(("horizon", "n"), [(1, 1), (2, 2), (3, None)])
def test_of_reference_steps_as_many_as_were_asked_for_are_taken(
    horizon: int, n: int | None
) -> None:
    parts = ReplyParts.of_reference(steps_item(*STEPS, prediction_horizon=horizon))
    assert (None if parts is None else len(parts.steps)) == n


def test_of_reference_steps_only_the_assistants_are_taken() -> None:
    tool_said = {"role": "tool", "content": "three rooms"}
    steps = [STEPS[0], tool_said, STEPS[1]]
    parts = ReplyParts.of_reference(steps_item(*steps, prediction_horizon=2))
    assert parts is not None
    assert names(parts) == ["find_rooms", "find_trains"]


@pytest.mark.parametrize("text", ["no plan at all", "", '{"plan": ', "[1, 2]"])
def test_a_reply_that_cannot_be_read_is_no_draft(text: str) -> None:
    assert ReplyParts.of_prediction(item_of(plan_row(model_response=text))) is None


def test_every_base_of_the_examples_reads_back_as_it_was_written() -> None:
    for base in example_bases():
        again = ReplyParts.of_prediction(base.item)
        assert again is not None, base.name
        assert again.value == base.parts.value, base.name
        found = base.findings(base.variant)
        assert not [finding for finding in found if finding.certainty == "proven"], base.name


def test_a_call_of_a_step_is_replaced_within_its_step() -> None:
    double = message("find_rooms", "Both.")
    double["tool_calls"] += message("find_trains")["tool_calls"]
    steps = [double, message("send_note", "Then.")]
    parts = ReplyParts.of_reference(steps_item(*steps, prediction_horizon=2))
    assert parts is not None
    new = Call(name="new", arguments={})
    changed = [[c.name for c in step.calls] for step in parts.with_calls(1, new).steps]
    assert changed == [["find_rooms", "new"], ["send_note"]]
    last = [[c.name for c in step.calls] for step in parts.with_calls(2, new, new).steps]
    assert last == [["find_rooms", "find_trains"], ["new", "new"]]
    assert parts.with_calls(2).steps[1].thought == "Then."


def test_what_a_call_lacks_is_not_written() -> None:
    bare = {"name": "find_rooms"}
    row = plan_row(tool_chain=[bare, call("send_note", text="hello")])
    parts = ReplyParts.of_reference(item_of(row))
    assert parts is not None
    assert parts.value["tool_chain"][0] == bare
    assert "reason" not in parts.value["tool_chain"][1]
