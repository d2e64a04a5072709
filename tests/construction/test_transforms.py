"""Cases that code makes of a seed: whole plans, next steps, distractors, broken tools."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.construction.cases import Context, Reject, Row, Transform, case_id
from apbjudge.construction.likeness import name_words
from apbjudge.construction.seeds import Seed, draw
from apbjudge.construction.transforms.broken import FAILURES, substitute_of, tool_broken
from apbjudge.construction.transforms.distractors import extraneous_plans, extraneous_steps
from apbjudge.construction.transforms.plans import holistic
from apbjudge.construction.transforms.steps import step_wise
from apbjudge.records import Item
from apbjudge.records import Row as RowReader
from apbjudge.records.tools import read_tool

from .worlds import CROSSING, FERRY, QUERY, context_of, seed_of, tool

BARE = tuple((name, arguments, None) for name, arguments, _ in CROSSING)
NEEDS = {1: {"sailing_id": 0}, 2: {"sailing_id": 0}, 3: {"booking_id": 2}}
BAKERY = seed_of(
    name="bakery",
    category="Shopping",
    tools=tuple(
        tool(name, f"{text}.", thing="string")
        for name, text in (
            ("list_breads", "Lists the breads of a bakery"),
            ("order_loaves", "Orders loaves to be collected"),
            ("rate_bakery", "Leaves a mark for a bakery"),
            ("water_garden", "Waters a bed of the garden"),
            ("lend_novel", "Lends a novel to a reader"),
            ("tune_piano", "Sends somebody who tunes a piano"),
            ("sharpen_knife", "Sharpens a kitchen knife"),
            ("paint_fence", "Paints a wooden fence"),
            ("walk_dog", "Walks a dog in the park"),
            ("mend_shoe", "Mends the sole of a shoe"),
        )
    ),
)


def rows(transform: Transform, seed: Seed, context: Context | None = None) -> list[Row]:
    return [
        made
        for made in transform(seed, context or context_of(seed, BAKERY))
        if not isinstance(made, Reject)
    ]


def rejects(transform: Transform, seed: Seed, context: Context | None = None) -> list[str]:
    made = transform(seed, context or context_of(seed, BAKERY))
    return [each.reason for each in made if isinstance(each, Reject)]


def item(row: Row) -> Item:
    return RowReader(row, 1, parsed=True).to_case()


def names(steps: list[dict[str, Any]]) -> list[str]:
    return [call["function"]["name"] for step in steps for call in step["tool_calls"]]


ALL: tuple[Transform, ...] = (holistic, step_wise, extraneous_plans, extraneous_steps, tool_broken)


@pytest.mark.parametrize("transform", ALL)
@pytest.mark.parametrize("calls", [CROSSING, BARE], ids=["results", "no results"])
def test_equal_seeds_give_equal_bytes_and_rows_of_one_case(transform: Any, calls: Any) -> None:
    one, other = (rows(transform, seed_of(*calls, needs=NEEDS)) for _ in range(2))
    assert one
    assert json.dumps(one) == json.dumps(other)
    assert {row["case_id"] for row in one} == {case_id(seed_of())}
    assert len({row["id"] for row in one}) == len(one)
    assert all(item(row).construction for row in one)


@pytest.mark.parametrize("transform", ALL)
def test_a_seed_without_calls_makes_none(transform: Any) -> None:
    seed = seed_of()
    none = Seed(run=seed.run, source="town")
    assert rows(transform, none) == []
    assert rejects(transform, none) == ["no calls in the solution"]


# Steps --------------------------------------------------------------------------------------------


def test_steps_are_cut_at_quarters_and_the_prefix_ends_before_the_reference() -> None:
    made = rows(step_wise, seed_of())
    assert [(row["stage"], row["prediction_horizon"]) for row in made] == [
        *(("early", 1), ("early", 2), ("early", 3)),
        *(("middle", 1), ("middle", 2), ("late", 1)),
    ]
    solution = [name for name, _, _ in CROSSING]
    for row in made:
        prefix, steps, rest = (
            json.loads(row[f"{name}_json"])
            for name in ("trajectory_prefix", "ground_truth_steps", "reference_remaining_steps")
        )
        before = names([m for m in prefix if m["role"] == "assistant"])
        assert before + names(steps) + names(rest) == solution
        assert prefix[-1]["role"] == "tool"
        later = [json.dumps(result) for _, _, result in CROSSING[len(before) :]]
        assert not any(
            result in message["content"]
            for message in prefix
            for result in later
            if message["content"]
        )
        assert all(message["role"] != "user" for message in prefix)
        assert row["query"] == QUERY


def test_without_results_only_the_beginning_can_be_asked_for() -> None:
    made = rows(step_wise, seed_of(*BARE, needs=NEEDS))
    assert [(row["stage"], row["prediction_horizon"]) for row in made] == [
        ("early", k) for k in (1, 2, 3)
    ]
    assert all(row["trajectory_prefix_json"] == "[]" for row in made)
    steps = json.loads(made[2]["ground_truth_steps_json"])
    calls = [call["function"]["arguments"] for step in steps for call in step["tool_calls"]]
    assert calls == [
        {"origin": "Vik", "day": "2026-08-14"},
        {"sailing_id": "PREVIOUS_RESULT"},
        {"sailing_id": "PREVIOUS_RESULT", "people": 4},
    ]


def test_later_turns_of_the_user_stay_among_the_messages() -> None:
    seed = seed_of()
    steps = list(seed.run.steps)
    steps.insert(2, type(steps[0])(source="user", text="Yes, go on."))
    run = type(seed.run)(
        **{
            name: getattr(seed.run, name)
            for name in ("trajectory_id", "case_id", "tested_model", "tools", "place")
        },
        query=f"{QUERY}\n\nYes, go on.",
        steps=tuple(steps),
    )
    (row, *_) = rows(step_wise, Seed(run=run, calls=seed.calls, source="town"))
    assert row["query"] == QUERY
    prefix = json.loads(row["trajectory_prefix_json"])
    assert [message["role"] for message in prefix] == ["assistant", "tool", "user"]


# Distractors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", [extraneous_plans, extraneous_steps])
@given(st.integers(0, 2**20))
def test_levels_are_nested_and_differ_in_distractors_alone(transform: Any, number: int) -> None:
    context = context_of(seed_of(), BAKERY, seed=number, levels=(2, 4, 6, 8))
    cases = [item(row) for row in rows(transform, seed_of(), context)]
    assert [len(case.condition.extraneous) for case in cases] == [2, 4, 6, 8]
    assert len({case.content_id for case in cases}) == 1
    used = {name for name, _, _ in CROSSING}
    for less, more in pairwise(cases):
        assert set(less.condition.extraneous) < set(more.condition.extraneous)
    for case in cases:
        assert case.tools is not None
        assert set(case.condition.extraneous) <= case.tools.names
        assert used.isdisjoint(case.condition.extraneous)
        assert len(case.tools.tools) == len(case.tools.names)


def test_what_might_serve_is_no_distractor() -> None:
    twins = (
        tool("list_sailings", "Lists sailings between two harbours.", start="string"),
        tool("crossing_book", "Something else altogether.", thing="string"),
        tool("FindSailings", "Other words.", thing="string"),
    )
    seed = seed_of(tools=(*FERRY, *twins[:1]))
    context = context_of(seed, seed_of(name="o", tools=twins), levels=(2, 3))
    (row,) = rows(extraneous_plans, seed, context)
    assert set(json.loads(row["extraneous_tool_names_json"])) == {"get_tides", "report_loss"}
    assert rejects(extraneous_plans, seed, context) == ["too few distractors for a level"]


# Broken tools -------------------------------------------------------------------------------------


@given(st.integers(0, 2**20))
def test_the_substitute_has_another_name_and_takes_the_same_arguments(number: int) -> None:
    context = context_of(seed_of(), seed=number)
    (row,) = rows(tool_broken, seed_of(), context)
    case = item(row)
    replacement, broken = case.condition.replacement, case.condition.broken_tool
    assert replacement is not None
    assert broken is not None
    assert set(name_words(replacement.name)).isdisjoint(name_words(broken))
    construction = case.construction
    assert construction is not None
    original = next(each for each in FERRY if each["name"] == broken)["parameters"]
    mapping = construction.parameter_map
    assert mapping.keys() == original["properties"].keys()
    assert len(set(mapping.values())) == len(mapping)
    assert {mapping[k]: v for k, v in original["properties"].items()} == replacement.parameters[
        "properties"
    ]
    assert [mapping[k] for k in original["required"]] == list(replacement.required)
    prefix = json.loads(row["trajectory_prefix_json"])
    assert prefix[-1]["content"] in FAILURES
    failed = prefix[-2]["tool_calls"][0]["function"]
    (step,) = json.loads(row["ground_truth_steps_json"])
    called = step["tool_calls"][0]["function"]
    assert (failed["name"], called["name"]) == (broken, replacement.name)
    assert called["arguments"] == {mapping[k]: v for k, v in failed["arguments"].items()}
    assert case.tools is not None
    assert case.tools.names == {each["name"] for each in FERRY} | {replacement.name}


def test_without_results_the_first_call_fails() -> None:
    (row,) = rows(tool_broken, seed_of(*BARE, needs=NEEDS))
    assert row["broken_tool_name"] == "find_sailings"
    assert len(json.loads(row["trajectory_prefix_json"])) == 2


def test_a_name_that_has_no_other_word_is_rejected() -> None:
    odd = (tool("zorgle", "Zorgles.", thing="string"),)
    assert rejects(tool_broken, seed_of(("zorgle", {"thing": "a"}, {}), tools=odd)) == [
        "no other word for the tool's name"
    ]
    prose = ({"name": "find_sailings", "parameters": "a day"},)
    assert rejects(tool_broken, seed_of(("find_sailings", {}, {}), tools=prose)) == [
        "no call that can fail"
    ]


@pytest.mark.parametrize(
    "name", ["book_crossing", "bookCrossing", "BookCrossing", "book-crossing", "BOOK_CROSSING"]
)
def test_substitutes_are_written_in_the_style_of_the_name(name: str) -> None:
    made = substitute_of(read_tool(tool(name, "Books."), "t"), seed_of(), draw(3))
    assert not isinstance(made, Reject)
    style = {
        "book_crossing": "reserve_passage",
        "bookCrossing": "reservePassage",
        "BookCrossing": "ReservePassage",
        "book-crossing": "reserve-passage",
        "BOOK_CROSSING": "RESERVE_PASSAGE",
    }
    assert made[0].name == style[name]
