"""Whether a prediction goes the reference's way."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge import grade
from apbjudge.protocols import matches_reference
from apbjudge.records import Row
from tests.support.rows import FIND_OK, MAIL_OK, SEAT_OK, plan, plan_row, published, read, step
from tests.support.rows import step_row as row_of_steps

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = "holistic step_wise efficiency tool_extraneous tool_broken unsolvable".split()


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
    ("names", "expected"),
    [
        (["find_trains", "reserve_seat"], True),
        (["reserve_seat", "find_trains"], False),
        (["find_trains"], False),
        (["find_trains", "reserve_seat", "send_mail"], False),
        (["find_trains", "find_trains", "reserve_seat"], False),
        (["find_trains", "Reserve_Seat"], False),
        (["find_trains", ""], False),
        ([], False),
    ],
)
def test_a_plan_matches_call_by_call(names: list[str], expected: bool) -> None:
    assert plan_match(REFERENCE, chain(*names)) is expected
    row = plan_row(chain(*names), tool_chain=REFERENCE)
    assert matches_reference(read(published(row))) is expected


@pytest.mark.parametrize(
    ("reference", "predicted", "expected"),
    [
        (["a"], ["a"], True),
        (["a"], ["b"], False),
        (["a b"], ["b a"], True),
        (["a a"], ["a"], False),
        (["a b"], ["a", "b"], False),
        (["a", "b"], ["a", "b"], True),
        (["a", "b"], ["b", "a"], False),
        (["a", "b"], ["a"], False),
        (["a", ""], ["a", ""], True),
        ([""], ["a"], False),
        ([""], [""], True),
    ],
)
def test_steps_match_step_by_step_in_any_order_within(
    reference: list[str], predicted: list[str], expected: bool
) -> None:
    k = len(reference)
    assert step_match(steps(*reference), steps(*predicted), k=k) is expected


def test_a_step_may_be_written_in_any_form() -> None:
    alternative = {"predicted_steps": [{"thought": "t", "action": "call", "tool": "find_trains"}]}
    assert step_match(steps("find_trains"), alternative) is True
    assert step_match({"role": "assistant", "tool": "find_trains"}, step(FIND_OK)) is True


def test_what_tools_answer_is_no_step_of_a_reference() -> None:
    answer = {"role": "tool", "name": "find_trains", "content": "RJ-77"}
    first, second = steps("find_trains", "reserve_seat")
    assert step_match([first, answer, second], [step(FIND_OK), step(SEAT_OK)], k=2) is True


def test_arguments_are_not_compared() -> None:
    reference = [{"name": "find_trains", "parameter_description": "where from and when"}]
    assert plan_match(reference, plan(FIND_OK)) is True
    wrong = ("find_trains", {"origin": "Udine", "day": 3})
    assert step_match(steps("find_trains"), step(wrong)) is True


@pytest.mark.parametrize("reference", [None, [], [{}], [{"name": "find_trains"}, {"name": ""}]])
def test_without_a_reference_chain_nothing_is_said(reference: Any) -> None:
    assert plan_match(reference, plan(FIND_OK, SEAT_OK), plan="First find.") is None


def test_steps_without_a_reference_say_nothing() -> None:
    assert step_match(None, step(FIND_OK)) is None
    assert step_match([{"role": "tool", "content": "RJ-77"}], step(FIND_OK)) is None
    assert step_match([{"tool_calls": [{"function": {}}]}], step(FIND_OK)) is None


@pytest.mark.parametrize(
    "reply",
    [
        "I would find a train and reserve.",
        '{"status": "REJECT", "reason": "no"}',
        {"plan": "p", "tool_chain": "find_trains, reserve_seat"},
        {"plan": "p", "tool_chain": {"name": "find_trains"}},
    ],
    ids=str,
)
def test_a_reply_without_a_readable_chain_neither_matches_nor_differs(reply: object) -> None:
    assert plan_match(REFERENCE, reply) is None


def test_steps_whose_calls_are_no_list_are_not_readable() -> None:
    reply = {"role": "assistant", "thought": "t", "tool_calls": "find_trains"}
    assert step_match(steps("find_trains"), reply) is None


@pytest.mark.parametrize("bad", ["[1", "{x}"])
def test_unreadable_arguments_leave_the_chain_readable(bad: str) -> None:
    assert step_match(steps("find_trains"), step(("find_trains", bad))) is True


def test_broken_tools_and_unsolvable_cases_have_no_reference_to_differ_from() -> None:
    assert step_match(steps("find_trains"), step(FIND_OK), broken_tool_name="send_mail") is None
    assert plan_match(REFERENCE, plan(FIND_OK, SEAT_OK), unsolvable_type="tool_removal") is None


def test_distractors_change_nothing_about_the_question() -> None:
    fields = {"split": "holistic_tool_extraneous", "extraneous_tool_names": ["send_mail"]}
    assert plan_match(REFERENCE, plan(FIND_OK, SEAT_OK), **fields) is True
    assert plan_match(REFERENCE, plan(FIND_OK, MAIL_OK, SEAT_OK), **fields) is False


_STEPS = st.lists(
    st.lists(st.sampled_from("abc"), max_size=3).map(" ".join), min_size=1, max_size=3
)


@given(_STEPS, st.integers(0, 99))
def test_a_reference_matches_itself_in_any_order_within_its_steps(
    texts: list[str], seed: int
) -> None:
    chance = random.Random(seed)
    mixed = [" ".join(chance.sample(text.split(), len(text.split()))) for text in texts]
    assert step_match(steps(*texts), steps(*mixed), k=len(texts)) is True


@given(_STEPS, _STEPS)
def test_it_is_the_same_from_either_side(one: list[str], other: list[str]) -> None:
    forth = step_match(steps(*one), steps(*other), k=len(one))
    assert forth is step_match(steps(*other), steps(*one), k=len(other))
    assert forth is (
        list(map(Counter, map(str.split, one))) == list(map(Counter, map(str.split, other)))
    )


# The examples ------------------------------------------------------------------------------------

SAME = {
    "holistic": {
        ("holistic-finance-01", "cress-small"),
        ("holistic-ui-01", "birch-medium"),
        ("holistic-retail-01", "birch-medium"),
        ("holistic-clinic-01", "alder-large"),
        ("holistic-logistics-01", "birch-medium"),
        ("holistic-logistics-02", "cress-small"),
    },
    "efficiency": {("efficiency-media-01", "birch-medium")},
}
"""Looked up by eye; all other chains of these files differ."""

UNKNOWN = {
    "holistic": {("holistic-clinic-01", "cress-small"), ("holistic-logistics-01", "cress-small")},
    "efficiency": {
        ("efficiency-clinic-01", "cress-small"),
        ("efficiency-media-01", "cress-small"),
    },
    "step_wise": {("step-travel-02", "cress-small")},
}
"""Rejections and replies without a plan."""

COUNTS = {
    "holistic": {True: 6, False: 19, None: 2},
    "step_wise": {True: 14, False: 24, None: 1},
    "efficiency": {True: 1, False: 21, None: 2},
    "tool_extraneous": {True: 25, False: 47},
    "tool_broken": {None: 27},
    "unsolvable": {None: 36},
}


def facts(name: str) -> dict[tuple[str, str], bool | None]:
    lines = (EXAMPLES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    items = [Row(json.loads(line), n).to_item() for n, line in enumerate(lines, 1)]
    return {(item.item_id, item.tested_model): matches_reference(item) for item in items}


@pytest.mark.parametrize("name", FILES)
def test_the_examples_go_the_way_they_are_seen_to_go(name: str) -> None:
    results = facts(name)
    assert Counter(results.values()) == COUNTS[name]
    for expected, value in ((SAME, True), (UNKNOWN, None)):
        if name in expected:
            assert {key for key, answer in results.items() if answer is value} == expected[name]


@pytest.mark.parametrize("name", FILES)
def test_every_judgement_of_a_run_carries_the_fact(name: str, tmp_path: Path) -> None:
    run = grade(EXAMPLES / f"{name}.jsonl", protocol="auto", out=tmp_path / "run")
    results = {(row.item_id, row.tested_model): row.matches_reference for row in run.judgements}
    assert results == facts(name)


def test_examples_that_humans_call_correct_go_both_ways() -> None:
    lines = (EXAMPLES / "labels" / "holistic.jsonl").read_text(encoding="utf-8").splitlines()
    labels = [json.loads(line) for line in lines]
    results = facts("holistic")
    right = Counter(
        results[label["item_id"], label["tested_model"]] for label in labels if label["is_correct"]
    )
    assert min(right[True], right[False]) > 0
