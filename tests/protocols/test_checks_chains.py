"""Whether a prediction goes the reference's way."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.protocols import matches_reference
from tests.support.rows import FIND_OK, SEAT_OK, plan, plan_row, published, read, step
from tests.support.rows import step_row as row_of_steps


def chain(*names: str) -> dict[str, Any]:
    return plan(*((name, {}) for name in names))


def steps(*calls: str) -> list[dict[str, Any]]:
    """One step per text, such as ``"a b"`` for two calls in one step."""
    return [step(*((name, {}) for name in text.split())) for text in calls]


def plan_match(reference: Any, reply: object, **fields: Any) -> bool | None:
    return matches_reference(read(plan_row(reply, tool_chain=reference, **fields)))


def step_match(reference: Any, reply: object, **fields: Any) -> bool | None:
    return matches_reference(read(row_of_steps(reply, ground_truth_steps=reference, **fields)))


REFERENCE = [{"name": "find_trains"}, {"tool_name": "reserve_seat"}]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (chain("find_trains", "reserve_seat"), True),
        (chain("reserve_seat", "find_trains"), False),
        (chain("find_trains"), False),
        (chain("find_trains", "find_trains", "reserve_seat"), False),
        (chain("find_trains", "Reserve_Seat"), False),
        (chain("find_trains", ""), False),
        (chain(), False),
        # without a readable chain it neither matches nor differs
        ("I would find a train and reserve.", None),
        ('{"status": "REJECT", "reason": "no"}', None),
        ({"plan": "p", "tool_chain": "find_trains, reserve_seat"}, None),
    ],
)
def test_a_plan_matches_call_by_call(reply: object, expected: bool | None) -> None:
    row = plan_row(reply, tool_chain=REFERENCE)
    assert matches_reference(read(row)) is matches_reference(read(published(row))) is expected


def test_a_step_may_be_written_in_any_form() -> None:
    alternative = {"predicted_steps": [{"thought": "t", "action": "call", "tool": "find_trains"}]}
    assert step_match(steps("find_trains"), alternative) is True
    assert step_match({"role": "assistant", "tool": "find_trains"}, step(FIND_OK)) is True
    assert step_match(steps("find_trains"), step(("find_trains", "[1"))) is True


def test_what_tools_answer_is_no_step_of_a_reference() -> None:
    answer = {"role": "tool", "name": "find_trains", "content": "RJ-77"}
    first, second = steps("find_trains", "reserve_seat")
    assert step_match([first, answer, second], [step(FIND_OK), step(SEAT_OK)], k=2) is True


def test_without_a_reference_chain_nothing_is_said() -> None:
    for reference in (None, [], [{"name": "find_trains"}, {"name": ""}]):
        assert plan_match(reference, plan(FIND_OK, SEAT_OK), plan="First find.") is None
    for reference in (None, [{"role": "tool", "content": "RJ-77"}], [{"tool_calls": [{}]}]):
        assert step_match(reference, step(FIND_OK)) is None
    # from that of a broken tool or an unsolvable case nothing can differ
    assert step_match(steps("find_trains"), step(FIND_OK), broken_tool_name="send_mail") is None
    assert plan_match(REFERENCE, plan(FIND_OK, SEAT_OK), unsolvable_type="tool_removal") is None


_STEPS = st.lists(
    st.lists(st.sampled_from("abc"), max_size=3).map(" ".join), min_size=1, max_size=3
)


@given(_STEPS, _STEPS)
def test_it_is_the_same_from_either_side(one: list[str], other: list[str]) -> None:
    forth = step_match(steps(*one), steps(*other), k=len(one))
    assert forth is step_match(steps(*other), steps(*one), k=len(other))
    assert forth is (
        list(map(Counter, map(str.split, one))) == list(map(Counter, map(str.split, other)))
    )
