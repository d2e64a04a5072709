"""Results used before they exist, and everything that only looks like it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.rows import (
    FIND_OK,
    MAIL_OK,
    SEAT_OK,
    plan,
    plan_row,
    proven,
    step,
    step_row,
    suspected,
)

PLAN_PLACE = "tool_chain[0].arguments.offer_id"
STEP_PLACE = "step[0].tool_calls[0].arguments.offer_id"


def _seat(value: Any) -> tuple[str, Any]:
    return ("reserve_seat", {"offer_id": value})


def _before(value: str) -> dict[str, Any]:
    """A plan whose first call has a value and whose second finds trains."""
    return plan_row(plan(_seat(value), FIND_OK))


def _step_before(value: str) -> dict[str, Any]:
    return step_row([step(_seat(value)), step(FIND_OK)], k=2)


def _after(value: str) -> list[dict[str, Any]]:
    return [
        plan_row(plan(FIND_OK, _seat(value))),
        step_row([step(FIND_OK), step(_seat(value))], k=2),
        step_row(step(FIND_OK, _seat(value))),
    ]


def _early(where: str) -> list[Any]:
    return [("E4", "used-before-made", where)]


SPELLINGS = [
    "$find_trains",
    "$find_trains.offers[0].id",
    "${find_trains.offers}",
    "$find_trains['offers'][0]",
    "<find_trains.result>",
]
PREVIOUS = ["PREVIOUS_RESULT", "<PREVIOUS_RESULT>", "PREVIOUS_STEP_OUTPUT", "PREVIOUS_RESULT.id"]


@pytest.mark.parametrize("value", SPELLINGS + PREVIOUS)
def test_a_reference_to_what_is_not_made_yet_is_proven_and_to_what_is_made_is_fine(
    value: str,
) -> None:
    assert proven(_before(value)) == _early(PLAN_PLACE)
    assert proven(_step_before(value)) == _early(STEP_PLACE)
    assert [(proven(row), suspected(row)) for row in _after(value)] == [([], [])] * 3


@pytest.mark.parametrize("value", ["{{find_trains.offers}}", "{{ find_trains }}"])
def test_a_template_may_be_filled_in_by_others(value: str) -> None:
    """A tool and a field of the user's data can have one name."""
    assert (proven(_before(value)), suspected(_before(value))) == ([], _early(PLAN_PLACE))
    assert [suspected(row) for row in _after(value)] == [[]] * 3


DEEP = ("reserve_seat", {"offer_id": "a", "passenger": {"name": ["x", "$find_trains.n"]}})


def test_a_result_that_no_earlier_call_yields_is_proven() -> None:
    for calls, where in (
        ([_seat("$reserve_seat.id")], PLAN_PLACE),  # its own result
        ([FIND_OK, _seat("$send_mail.id")], "tool_chain[1].arguments.offer_id"),
        ([DEEP, FIND_OK], "tool_chain[0].arguments.passenger.name[1]"),
    ):
        assert proven(plan_row(plan(*calls))) == _early(where)


INNOCENT = [
    "the offer id that find_trains returns in step 3",
    "find_trains.offers[0].id",
    "costs $find_trains or so",
    "$find_trains and $send_mail",
    "$Find_Trains.id",
    "${TRAVELLER_NAME}",
    "<h1>Seats</h1>",
    "PREVIOUS_RESULTS_PAGE is its title",
    "the PREVIOUS_RESULT",
    *("$", "<>", "$20", "$2.50", "#2", "#W2", "page_2.pdf", "<3", "B[2]", "2"),
]


@pytest.mark.parametrize("value", INNOCENT)
def test_words_amounts_and_foreign_names_prove_nothing(value: str) -> None:
    assert proven(_before(value)) == []
    assert proven(step_row(step(_seat(value)))) == []


def test_a_reference_that_the_query_itself_holds_is_a_quotation() -> None:
    for value in ("$find_trains.id", "PREVIOUS_RESULT"):
        assert proven(_before(value) | {"query": f"Its id is {value}, really."}) == []


def test_a_previous_result_after_an_executed_trajectory_is_only_vague() -> None:
    executed = {"thought": "t", "tool": "find_trains", "arguments": {}, "observation": "offers"}
    gemini = {"role": "model", "parts": [{"functionCall": {"name": "find_trains", "args": {}}}]}
    for message in ({"role": "tool", "content": "two offers"}, executed, gemini):
        row = step_row(step(_seat("PREVIOUS_RESULT")), trajectory_prefix=[message])
        assert (proven(row), suspected(row)) == ([], [("E5", "vague-value", STEP_PLACE)])


STEP_REFERENCES = [
    *("$step_2.id", "${step2}", "{{step-2.offers}}", "<step 2 offer>", "<result of step 2>"),
    *("steps[2].output", "${steps.2.result}", "@step2", "$.steps[2].id", "[step 2]", "<<step_2>>"),
]
NUMBERS = ["{{2.output}}", "#E2", "$2", "${2}", "$2.id", "{{result_2}}", "outputs[2]", "step2.id"]


@pytest.mark.parametrize("value", [*STEP_REFERENCES, *NUMBERS])
def test_a_numbered_step_that_comes_later_is_proven_in_steps_unless_it_may_be_an_amount(
    value: str,
) -> None:
    row = _step_before(value)
    hint = [("E4", "early-reference", STEP_PLACE)]
    is_step = value in STEP_REFERENCES
    assert (proven(row), suspected(row)) == ((_early(STEP_PLACE), []) if is_step else ([], hint))
    # it may be counted with the trajectory
    before = [{"role": "tool", "content": "a"}, {"role": "tool", "content": "b"}]
    assert proven(row | {"trajectory_prefix": before}) == []
    # and in a plan in other ways
    assert proven(_before(value)) == []
    assert ("E4", "early-reference", PLAN_PLACE) in suspected(_before(value))
    assert suspected(plan_row(plan(FIND_OK, MAIL_OK, _seat(value)))) == []


def test_steps_may_be_counted_by_their_calls() -> None:
    def referring(n: int) -> dict[str, Any]:
        return step_row([step(FIND_OK, SEAT_OK, MAIL_OK), step(_seat(f"${{step_{n}.id}}"))], k=2)

    assert [code for code, _, _ in proven(referring(4))] == ["E4"]
    assert proven(referring(3)) == []  # the third call


LONG_VALUES: dict[str, Callable[[int], str]] = {
    "dots after a placeholder": lambda n: "PREVIOUS_RESULT" + "." * n + "a!",
    "blanks after a reference": lambda n: "$find_trains" + " " * n + "x",
    "a very long name": lambda n: "_A" * n + "!a",
    "numbered steps": lambda n: "step 1 " * n,
}


@pytest.mark.parametrize("value", LONG_VALUES.values(), ids=LONG_VALUES)
def test_a_huge_value_is_no_reference(value: Callable[[int], str]) -> None:
    # Patterns that backtracked over it would not end within hours.
    assert proven(step_row([step(FIND_OK), step(_seat(value(300_000)))], k=2)) == []


LINES = "1. find_trains for ten.\n2. With reserve_seat hold a seat.\n3. Call send_mail."
FORWARD = [
    "result of step 3",
    "the offer_id from the result of step 3",
    "Use the results from step 2.",
    "Step 3's output",
    "${step_2.offer}",
]
PLACE = "tool_chain[0].arguments.origin"


def _forward(value: str, text: str = LINES, **fields: Any) -> dict[str, Any]:
    call = ("find_trains", {"origin": value, "day": "x"})
    return plan_row(plan(call, SEAT_OK, MAIL_OK, text=text), **fields)


@pytest.mark.parametrize("value", FORWARD)
@pytest.mark.parametrize(
    "text",
    [
        LINES,
        "To do:\n\n1) find_trains\n   by ten\n2) reserve_seat\n3) send_mail\n\nDone.",
        "**1.** find_trains\n**2.** `reserve_seat` after find_trains\n**3.** send_mail",
    ],
)
def test_a_forward_reference_is_proven_where_each_numbered_line_names_its_call(
    value: str, text: str
) -> None:
    assert proven(_forward(value, text)) == _early(PLACE)


@pytest.mark.parametrize(
    "text",
    [
        "1. Find the trains.\n2. Reserve a seat.\n3. Tell the desk.",
        "1. find_trains_v2\n2. reserve_seat\n3. send_mail",
        "0. find_trains\n1. reserve_seat\n2. send_mail",
        "1. reserve_seat\n2. find_trains\n3. send_mail",
    ],
)
def test_elsewhere_a_forward_reference_is_only_suspected(text: str) -> None:
    for value in FORWARD:
        assert proven(_forward(value, text)) == []
        assert ("E4", "early-reference", PLACE) in suspected(_forward(value, text))


def test_words_that_only_mention_a_later_step_prove_nothing() -> None:
    for value in (
        "a town that serves for the result of step 3 as well",
        "result of step 9",
        "the result of step 3, if there is one by then, or else Udine",
    ):
        assert proven(_forward(value)) == []


@pytest.mark.parametrize("value", FORWARD)
def test_a_forward_reference_that_the_query_or_the_reference_has_is_not_proven(value: str) -> None:
    assert proven(_forward(value, query=f"Set it to {value!r}.")) == []
    call = ("find_trains", {"origin": value, "day": "y"})
    reference = plan(call, SEAT_OK, MAIL_OK)["tool_chain"]
    assert proven(_forward(value, plan=LINES, tool_chain=reference)) == []
