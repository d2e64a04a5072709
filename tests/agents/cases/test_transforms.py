"""Cases that code makes of a seed: whole plans, next steps, distractors, broken tools."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise, permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.agents.cases import pool as pools
from apbjudge.agents.cases.cases import Context, Reject, Row, Transform, case_id
from apbjudge.agents.cases.likeness import definition_of, likeness
from apbjudge.agents.cases.pool import ToolPool
from apbjudge.agents.cases.seeds import Seed, draw
from apbjudge.agents.cases.transforms.broken import FAILURES, substitute_of, tool_broken
from apbjudge.agents.cases.transforms.distractors import TOO_FEW, extraneous_plans, extraneous_steps
from apbjudge.agents.cases.transforms.plans import holistic
from apbjudge.agents.cases.transforms.steps import step_wise
from apbjudge.protocols.tool_words import name_words
from apbjudge.records import Item
from apbjudge.records import Row as RowReader
from apbjudge.records.tools import read_tool
from apbjudge.records.trajectories import ToolCall, ToolResult, TrajectoryStep

from .worlds import BAKERY, CROSSING, FERRY, QUERY, Call, context_of, seed_of, tool

BARE = tuple((name, arguments, None) for name, arguments, _ in CROSSING)
NEEDS = {1: {"sailing_id": 0}, 2: {"sailing_id": 0}, 3: {"booking_id": 2}}


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
    none = Seed(trajectory=seed.trajectory, source="town")
    assert rows(transform, none) == []
    assert rejects(transform, none) == ["no calls in the solution"]


# Steps --------------------------------------------------------------------------------------------


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


def with_steps(seed: Seed, *added: tuple[int, TrajectoryStep]) -> Seed:
    """The seed with further steps in its run: each at the place that it is to have in the end."""
    steps = list(seed.trajectory.steps)
    calls = list(seed.calls)
    for at, step in added:
        steps.insert(at, step)
        calls = [replace(c, step=c.step + (c.step >= at)) for c in calls]
    return replace(
        seed, trajectory=replace(seed.trajectory, steps=tuple(steps)), calls=tuple(calls)
    )


def attempt(name: str, *results: str, thought: str = "", **arguments: Any) -> TrajectoryStep:
    """A step with a call for each result."""
    calls = [ToolCall(name, arguments, f"{name}-{i}") for i in range(len(results))]
    answers = [ToolResult(text, c.call_id) for text, c in zip(results, calls, strict=True)]
    return TrajectoryStep(
        source="agent",
        kind="call",
        thought=thought,
        calls=tuple(calls),
        observations=tuple(answers),
    )


def test_later_turns_of_the_user_stay_among_the_messages() -> None:
    seed = with_steps(seed_of(), (2, TrajectoryStep(source="user", text="Yes, go on.")))
    seed = replace(seed, trajectory=replace(seed.trajectory, query=f"{QUERY}\n\nYes, go on."))
    (row, *_) = rows(step_wise, seed)
    assert row["query"] == QUERY
    prefix = json.loads(row["trajectory_prefix_json"])
    assert [message["role"] for message in prefix] == ["assistant", "tool", "user"]


def test_calls_that_failed_are_history_and_never_the_reference() -> None:
    failed = attempt("check_space", "Error: no such sailing.", sailing_id="S-1")
    retried = attempt("get_tides", '{"high": "07:40"}', "Error: asleep.", thought="Once more.")
    tides: Call = ("get_tides", {}, {"high": "07:40"})
    calls = [*CROSSING[:2], tides, *CROSSING[2:]]
    seed = seed_of(*calls, needs={})
    # before the second call that works, and before the third, in whose step a call fails as well
    seed = with_steps(seed, (2, failed), (4, failed))
    steps = list(seed.trajectory.steps)
    steps[5] = retried
    seed = replace(seed, trajectory=replace(seed.trajectory, steps=tuple(steps)))
    made = {(row["stage"], row["prediction_horizon"]): row for row in rows(step_wise, seed)}
    solution = [name for name, _, _ in calls]
    for (stage, k), row in made.items():
        first = ("early", "middle", "late").index(stage) + 1
        reference = json.loads(row["ground_truth_steps_json"])
        rest = json.loads(row["reference_remaining_steps_json"])
        assert names(reference) == solution[first : first + k]
        assert names(rest) == solution[first + k :]
        assert all("S-1" not in json.dumps(step) for step in [*reference, *rest])
    prefix = json.loads(made["early", 1]["trajectory_prefix_json"])
    assert prefix[-1]["content"] == "Error: no such sailing."  # the failed attempts are shown
    next_two = json.loads(made["early", 2]["ground_truth_steps_json"])
    assert next_two[1]["thought"] == ""  # it spoke of a failure that nobody was shown
    at_once = json.loads(made["middle", 1]["ground_truth_steps_json"])
    assert at_once[0]["thought"] == "Once more."


def test_the_stage_is_the_one_that_follows_from_the_messages() -> None:
    for n in (4, 8):
        calls = [("get_tides", {"day": at}, {"high": str(at)}) for at in range(n)]
        made = rows(step_wise, seed_of(*calls, needs={}))
        assert {row["stage"] for row in made} == {"early", "middle", "late"}
        for row in made:
            assert item({**row, "stage": None}).groups["stage"] == row["stage"]


# Distractors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", [extraneous_plans, extraneous_steps])
def test_what_the_run_calls_at_all_is_no_distractor(transform: Transform) -> None:
    seed = with_steps(
        seed_of(),
        (2, attempt("get_tides", "Error: asleep.")),
        (6, attempt("report_loss", "Error: closed.")),
    )
    context = context_of(seed, BAKERY, levels=(9,))
    (row,) = rows(transform, seed, context)
    offered = {each["name"] for each in FERRY}
    assert offered.isdisjoint(json.loads(row["extraneous_tool_names_json"]))
    assert offered <= set(json.loads(row["tool_names_json"]))
    assert rejects(transform, seed, context_of(seed, levels=(2,))) == [TOO_FEW]


def test_tools_invented_for_the_task_come_before_those_of_other_tasks() -> None:
    invented = (
        tool("get_ferry_menu", "States what the kitchen on board cooks.", ferry="string"),
        tool("rent_deck_chair", "Rents a chair to sit in.", deck="string"),
        tool("look_up_sailings", "Shows sailings between harbours.", start="string"),
        tool("GetTides", "Something else.", thing="string"),
    )
    seed = seed_of(invented=tuple(read_tool(each, "t") for each in invented), model="m")
    one, two, four = (
        set(json.loads(row["extraneous_tool_names_json"]))
        for row in rows(extraneous_plans, seed, context_of(seed, BAKERY, levels=(1, 2, 4)))
    )
    assert one < two == {"get_ferry_menu", "rent_deck_chair"}
    assert two < four <= two | BAKERY.toolset.names


def test_what_ends_a_run_or_may_serve_is_no_distractor() -> None:
    others = (
        tool("transfer_to_human", "Hands the talk over.", thing="string"),
        tool("fetch_ferry_sailings", "All departures of today.", day="string"),  # may find sailings
        tool("mend_shoe", "Mends the sole of a shoe.", thing="string"),
    )
    seed = seed_of(tools=FERRY[:4])
    ends = frozenset({"transfer_to_human"})
    context = context_of(seed, seed_of(name="o", tools=others, ends=ends), levels=(1, 2))
    assert [row["extraneous_tool_names_json"] for row in rows(extraneous_plans, seed, context)] == [
        '["mend_shoe"]'
    ]


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


def test_a_name_that_has_no_other_word_is_rejected() -> None:
    odd = (tool("zorgle", "Zorgles.", thing="string"),)
    assert rejects(tool_broken, seed_of(("zorgle", {"thing": "a"}, {}), tools=odd)) == [
        "no other word for the tool's name"
    ]
    prose = ({"name": "find_sailings", "parameters": "a day"},)
    assert rejects(tool_broken, seed_of(("find_sailings", {}, {}), tools=prose)) == [
        "no call that can fail"
    ]


def renamed(name: str, *, number: int = 3, **types: str) -> str:
    made = substitute_of(read_tool(tool(name, "Books.", **types), "t"), seed_of(), draw(number))
    return "" if isinstance(made, Reject) else made[0].name


def test_substitutes_have_the_style_of_the_name_and_lack_words_that_have_no_other() -> None:
    for name, other in (
        ("bookCrossing", "reservePassage"),
        ("BookCrossing", "ReservePassage"),
        ("book-crossing", "reserve-passage"),
        ("BOOK_CROSSING", "RESERVE_PASSAGE"),
    ):
        assert renamed(name) == other
    for number in range(8):
        assert re.fullmatch(r"\w+ClimateSummary", renamed("getZorgWeatherReport", number=number))
        other = renamed("getZorgCount", number=number, patient_id="string")
        assert re.fullmatch(r"\w+ByClientIdentifier", other)
        assert renamed("getZorg", number=number, blurp="string") == ""  # blurp_value tells nothing


def test_what_ends_a_run_or_is_named_in_the_task_does_not_break() -> None:
    tools = (tool("think", "Notes.", thought="string"), tool("get_tides", "Tides.", day="string"))
    calls = (("think", {"thought": "a"}, {"a": 1}), ("get_tides", {"day": "a"}, {"b": 2}))
    (row,) = rows(tool_broken, seed_of(*calls, tools=tools))
    assert row["broken_tool_name"] == "get_tides"
    named = seed_of(*calls, tools=tools, query="Call get_tides for me.")
    assert rejects(tool_broken, named) == ["no call that can fail"]


# Tools ------------------------------------------------------------------------------------------


def test_likeness_is_shared_words_of_name_and_description() -> None:
    one = read_tool(tool("find_sailing", "Finds sailings.", origin="string"), "t")
    other = read_tool(tool("list_sailings", "Lists sailings.", origin="string"), "t")
    far = read_tool(tool("rate_bakery", "Leaves a mark.", mark="integer"), "t")
    assert likeness(one, one) == 1
    assert likeness(one, other) == likeness(other, one) == pytest.approx(1 / 3)
    assert likeness(one, far) == 0
    assert likeness(read_tool({"name": "a"}, "t"), far) == 0


def test_definitions_have_the_same_fields_whatever_the_source_called_them() -> None:
    people = {"people": {"type": "int", "description": "how many"}}
    odd = {"api_name": "book", "api_description": "Books.", "parameters": people}
    made = tool("book", "Books.", people="integer")
    made["parameters"]["properties"]["people"]["description"] = "how many"
    assert definition_of(read_tool(odd | {"required": ["people"]}, "t")) == made


def test_the_pool_does_not_depend_on_the_order_of_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "MOST_TOOLS", 4)
    seeds = [
        seed_of(name=f"s{i}", tools=(tool(f"one_{i}", "Does one."), tool(f"two_{i}", "Does two.")))
        for i in range(4)
    ]
    drawn = {
        tuple(t.name for t in context_of(*order).pool.draw(draw(1, "x"), (), category=""))
        for order in permutations(seeds)
    }
    assert len(drawn) == 1
    assert len(next(iter(drawn))) == 4


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


def test_tools_near_in_subject_and_of_the_same_category_are_drawn_first() -> None:
    pool = ToolPool()
    pool.add(seed_of(name="a", category="Travel"))
    pool.add(seed_of(name="b", category="Shop", tools=(tool("sail_shop", "Sells sails."),)))
    pool.close()
    wanted = read_tool(tool("see_sailings", "Shows sailings."), "t")
    drawn = [each.name for each in pool.draw(draw(1), [wanted], category="Shop")]
    assert drawn[:2] == ["sail_shop", "book_crossing"]
    assert len(drawn) == len(FERRY) + 1
