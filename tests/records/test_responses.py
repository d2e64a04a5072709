"""Replies as models really write them."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.records.predictions import Form, Prediction
from apbjudge.records.responses import read_response
from tests.support.rows import FIND_OK, SEAT_OK, plan, step

PLAN = plan(FIND_OK, SEAT_OK)
TEXT = json.dumps(PLAN)
STEPS = json.dumps([step(FIND_OK), step(SEAT_OK)])
FORMS: tuple[Form, ...] = ("plan", "steps")

WRAPPED: dict[str, Callable[[str], str]] = {
    "fence": lambda t: f"```json\n{t}\n```",
    "prose": lambda t: f"Here is my answer:\n{t}\nThat is all. {{ok}}",
    "thoughts": lambda t: f'<think>\nfirst {{"plan": "wrong", "tool_chain": []}} no\n</think>\n{t}',
    "thoughts never opened": lambda t: f"so {{x}} or [y] it is.</think>\n{t}",
    "thoughts never closed": lambda t: f"<think> so {{x}} it is.\n{t}",
    "brackets in prose": lambda t: " ".join(f"[{w}]({w})" for w in "abcdefghijklmn") + f"\n{t}",
    "small values after": lambda t: f"{t}\n\nChecked: [1, 2], {{}} and {{'x'}} are fine.",
    "bells and NUL around": lambda t: f"\x00\x07{t}\x00",
}


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
def test_the_answer_is_found_however_it_is_wrapped(wrap: Callable[[str], str]) -> None:
    assert read_response(wrap(TEXT), "plan", None) == read_response(TEXT, "plan", None)
    assert read_response(wrap(STEPS), "steps", 2) == read_response(STEPS, "steps", 2)
    assert [c.name for c in read_response(wrap(TEXT), "plan", None).calls] == [
        "find_trains",
        "reserve_seat",
    ]


def test_a_list_in_the_prose_after_a_plan_is_not_the_plan() -> None:
    for after in ('Guests: [{"name": "Ann"}, {"name": "Bo"}]', 'Seats: {"name": "Ann", "n": 2}'):
        read = read_response(f"{TEXT}\n\n{after}", "plan", None)
        assert [c.name for c in read.calls] == ["find_trains", "reserve_seat"]


@pytest.mark.parametrize("key", ["name", "tool_name", "tool", "api_name", "api"])
def test_a_call_is_read_in_every_spelling(key: str) -> None:
    names = "parameter_description arguments parameters args input kwargs param".split()
    arguments: Any = {"day": "2026-05-14"}
    for values, given_ in product(names, (arguments, json.dumps(arguments))):
        entry = {key: "find_trains", values: given_}
        chain = read_response(json.dumps({"plan": "p", "tool_chain": [entry]}), "plan", None)
        one = read_response(json.dumps(step() | {"tool_calls": [{"function": entry}]}), "steps", 1)
        flat = read_response(json.dumps(step() | {"tool_calls": [entry]}), "steps", 1)
        for read in (chain, one, flat):
            (call,) = read.calls
            assert (call.name, call.arguments, read.problems) == ("find_trains", arguments, ())


def test_arguments_that_are_no_object_are_no_problem_and_broken_ones_are() -> None:
    where = "step[0].tool_calls[0].arguments"
    for arguments, expected, problems in (
        *((text, {}, []) for text in ("", "  ", "{}")),
        *((other, None, []) for other in ("in words", "[1]", "5", None, [1], 5)),
        *((text, text, [where]) for text in ('{"a": ', "{'a': 1}", '{"a": NaN}', '{"a": 1}}')),
    ):
        read = read_response(json.dumps(step(("find_trains", arguments))), "steps", 1)
        (call,) = read.calls
        assert [p.where for p in read.problems] == problems
        assert problems or call.arguments == expected


@pytest.mark.parametrize("form", FORMS)
def test_a_rejection_is_told_apart(form: Form) -> None:
    text = json.dumps({"status": "Reject", "reason": "no budget"})
    read = read_response(f"Sorry. {text}", form, 1)
    assert (read.kind, read.plan, list(read.calls)) == ("reject", "no budget", [])
    assert read.problems == ()


UNREADABLE = {
    "empty": "",
    "prose": "I would take the train at nine.",
    "not a number": '{"plan": "p", "tool_chain": [{"name": "a", "x": NaN}]}',
    "truncated": '{"plan": "p", "tool_chain": [{"name": "find_trains", "parameter_des',
    "only thoughts": f"<think>{TEXT}</think>",
    "deep": "[" * 5000 + "]" * 5000,
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_a_problem_and_never_an_error(text: str) -> None:
    for form in FORMS:
        read = read_response(text, form, 1)
        assert (read.kind, read.steps) == ("text", ())
        assert [p.where for p in read.problems] == ["response"]


def test_a_piece_of_a_broken_answer_is_not_taken_for_the_answer() -> None:
    begun = '{"plan": "p", "tool_chain": [{"name": "a", "guests": [{"name": "Ann"}]'
    for text in (f'{begun}}}, {{"name": "b', f'{begun}, "n": NaN}}]}}', f"So: {begun}}},]}}"):
        assert "Ann" not in [c.name for c in read_response(text, "plan", None).calls]


def test_a_lone_half_of_a_character_is_read_as_unknown() -> None:
    for escape in (r"\ud800", r"\ud800\ud800", r"\udc00\ud83d\ude00", "\ud800"):
        text = f'{{"plan": "a{escape}b \\\\ud800", "tool_chain": []}}'
        read = read_response(text, "plan", None)
        assert (read.kind, read.plan[:2], read.problems) == ("plan", "a\ufffd", ())
        assert read.plan.endswith("b \\ud800")


@pytest.mark.parametrize("digits", [19, 20, 10_000])
def test_a_whole_number_of_any_length_is_read(digits: int) -> None:
    for sign in ("", "-"):
        number = f'{{"n": {sign}{"9" * digits}}}'
        for arguments in (number, json.dumps(number)):
            (call,) = read_response(
                f'[{{"name": "a", "arguments": {arguments}}}]', "steps", 1
            ).calls
            assert call.arguments is not None
            assert (call.arguments["n"] < 0) is bool(sign)
            assert abs(call.arguments["n"]) >= min(int("9" * min(digits, 30)), 2**63)


@pytest.mark.parametrize("piece", ["[", "{x} ", "[1] ", "<think>"])
def test_a_huge_broken_reply_is_read_to_its_end(piece: str) -> None:
    # Work that grew with the square of the length would not end within an hour.
    for form in FORMS:
        assert read_response(piece * 50_000, form, 1).kind == "text"


_PIECES = [*'{}[]":,\\', '{"plan": "p"}', TEXT, STEPS, "<think>", "</think>", "NaN"]


@settings(max_examples=100, deadline=None)
@given(
    text=st.lists(st.sampled_from(_PIECES) | st.text(max_size=5), max_size=15).map("".join),
    form=st.sampled_from(FORMS),
)
def test_no_text_raises(text: str, form: Any) -> None:
    read = read_response(text, form, 2)
    assert read.kind in ("plan", "steps", "reject", "text")
    assert (read.kind != "text") or read.problems


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                "plan tool_chain status reason name tool function arguments role thought action "
                "tool_calls predicted_steps parameter_description".split()
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@settings(max_examples=120, deadline=None)
@given(value=_json, form=st.sampled_from(FORMS))
def test_no_json_raises_and_prose_around_it_changes_nothing(value: Any, form: Any) -> None:
    bare = read_response(json.dumps(value), form, 1)
    if isinstance(value, dict | list):
        wrapped = read_response(f"Well:\n{json.dumps(value)}\nDone.", form, 1)
        assert (wrapped.kind, wrapped.steps) == (bare.kind, bare.steps)


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"name": "planner", "tool_calls": None}, []),  # the name of who speaks
        ({"name": "planner", "tool_calls": [], "content": "All is booked."}, []),
        ({"name": "find_trains", "parameters": "{}", "tool_calls": None}, ["find_trains"]),
        ({"tool_name": "find_trains", "content": "I look."}, ["find_trains"]),
        ({"name": "planner", "tool": "find_trains", "content": "I look."}, ["find_trains"]),
        ({"name": "planner", "tool": "find_trains", "arguments": {}}, ["find_trains"]),
    ],
)
def test_a_name_beside_a_role_is_that_of_a_call_where_it_has_arguments(
    fields: dict[str, Any], names: list[str]
) -> None:
    spoken = {"role": "assistant", **fields}
    for reply in (spoken, [spoken]):
        read = read_response(json.dumps(reply), "steps", 1)
        assert [call.name for call in read.calls] == names
        assert not any("tool name" in problem.message for problem in read.problems)


CALL = {"name": "find_trains", "arguments": {"day": "x"}}


@pytest.mark.parametrize(
    ("reply", "names"),
    [
        ({"plan": [{"step": 1, "name": "Look", "tool": "find_trains"}]}, ["find_trains"]),
        ({"plan": [{"function": "find_trains", "args": {}}]}, ["find_trains"]),
        ({"plan": [CALL, {"step": 2, "description": "Tell."}, "Done."]}, ["find_trains"]),
        ({"plan": {"steps": [CALL]}}, ["find_trains"]),
        ({"steps": [CALL]}, ["find_trains"]),
        ({"plan": [CALL], "tool_chain": []}, []),  # what is asked for comes first
        ({"plan": [{"step": 1, "tool": "none", "description": "Think."}]}, []),
    ],
)
def test_calls_in_a_plan_that_is_a_list_are_read(reply: Any, names: list[str]) -> None:
    read = read_response(json.dumps(reply), "plan", None)
    assert (read.kind, [call.name for call in read.calls]) == ("plan", names)
    assert (read.problems, read.others) == ((), ())


def _kinds(read: Prediction) -> list[tuple[str, list[str]]]:
    return [(one.kind, [call.name for call in one.calls]) for one in (read, *read.others)]


def test_a_reply_is_read_in_every_way() -> None:
    find, seat = plan(FIND_OK), plan(SEAT_OK)
    rejects = {"status": "REJECT", "reason": "no"}

    def kinds(*parts: object, form: Form = "plan", k: int | None = None) -> object:
        text = " or ".join(part if isinstance(part, str) else json.dumps(part) for part in parts)
        return _kinds(read_response(text, form, k))

    one, other = ["find_trains"], ["reserve_seat"]
    assert kinds(find) == [("plan", one)]
    assert kinds("Here:", find, find, {"note": 1}) == [("plan", one)]
    assert kinds(find, seat) == [("plan", other), ("plan", one), ("plan", [*one, *other])]
    assert kinds(find, rejects) == [("reject", []), ("plan", one)]
    assert kinds(rejects | {"tool_chain": find["tool_chain"]}) == [
        *(("reject", one), ("reject", []), ("plan", one))
    ]
    assert kinds("I must REJECT that.", find) == [("plan", one), ("reject", [])]
    assert kinds(plan(FIND_OK, text="or REJECT")) == [("plan", one)]
    steps = kinds(step(FIND_OK), step(SEAT_OK), form="steps", k=1)
    assert steps == [("steps", other), ("steps", one), ("steps", [*one, *other])]
    tagged = f"<tool_call>{json.dumps(CALL)}</tool_call>"
    assert kinds(tagged, form="steps", k=1) == [("steps", one)]
    assert kinds(tagged, rejects, form="steps", k=1) == [("steps", one), ("reject", [])]
    (_, both), *alone = kinds(CALL, CALL | {"name": "reserve_seat"}, form="steps", k=1)
    assert (both, [names for _, names in alone]) == ([*one, *other], [one, other, [*one, *other]])
