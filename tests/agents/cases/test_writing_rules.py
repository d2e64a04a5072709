"""What code demands of a model's texts: each rule has an answer that breaks it alone."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.agents.cases.literals import is_worded, literals_of, places_of, results_of
from apbjudge.agents.cases.seeds import Seed
from apbjudge.agents.cases.writing.config import KINDS, Kind, WriteConfig
from apbjudge.agents.cases.writing.rules import read_reply
from apbjudge.agents.cases.writing.tasks import WritingTask, task_of
from apbjudge.errors import OptionError
from apbjudge.records.trajectories import TrajectoryStep

from .worlds import CROSSING, FERRY, QUERY, seed_of, tool
from .writers import (
    ASKED,
    FAULTY,
    GOOD,
    INVENTED,
    PLAN,
    PRIVATE,
    REQUIREMENTS,
    REWRITTEN,
    journey,
)


def task(kind: Kind, seed: Seed | None = None) -> WritingTask:
    made = task_of(seed or seed_of(), kind)
    assert isinstance(made, WritingTask), made
    return made


def codes(kind: Kind, answer: Any, seed: Seed | None = None) -> list[str]:
    reply = answer if isinstance(answer, str) else json.dumps(answer)
    return sorted({each.code for each in read_reply(task(kind, seed), reply).complaints})


# Values -------------------------------------------------------------------------------------------


def test_literals_are_what_the_arguments_take_from_the_query() -> None:
    assert literals_of(seed_of()) == ("Vik", "2026-08-14", "4", "T-7715")
    assert task("private").removable == ("Vik", "2026-08-14", "T-7715")
    assert results_of(seed_of()) == ("S-310", "B-9021")


def test_values_are_looked_for_as_wholes() -> None:
    assert places_of("4", "for 4 people") == [(4, 5)]
    assert places_of("two words", "Two\n  words here") == [(0, 11)]
    for value, text in (("4", "4.5 metres"), ("ada", "ada@x.example"), ("T-7715", "t-7715")):
        assert places_of(value, text) == []


@given(st.text(min_size=1), st.text(), st.text())
def test_a_value_between_spaces_is_always_there(value: str, before: str, after: str) -> None:
    if value.split():
        assert places_of(value, f"{before} {value} {after}")
        if any(c.isalnum() for c in value.casefold()):
            assert is_worded(value, f"{before} {value} {after}")


# Answers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_is_accepted_in_a_wrapping_and_refused_without_its_object(kind: Kind) -> None:
    wrapped = f"<think>[1]</think>Here it is:\n```json\n{json.dumps(GOOD[kind])}\n```"
    assert read_reply(task(kind), wrapped) == (GOOD[kind], ())
    for reply in ("Sure!", '{"text": "x"}', "null"):
        reading = read_reply(task(kind), reply)
        assert [each.code for each in reading.complaints] == ["no JSON"]
        assert reading.value is None


FIELDS = st.sampled_from(["query", "plan", "tools", "removed", "name", "parameters", "type"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=6) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4),
    max_leaves=12,
)


@given(st.sampled_from(KINDS), st.text() | VALUES.map(json.dumps))
def test_no_reply_breaks_the_rules(kind: Kind, reply: str) -> None:
    reading = read_reply(task(kind), reply)
    assert reading.complaints or reading.value is not None


BROKEN_RULES: list[tuple[Kind, str, str]] = [
    ("query", "empty, literal lost", "  "),
    ("query", "same as before", QUERY.upper().replace(" VIK", " Vik")),
    ("query", "too long", f"{REWRITTEN} {'Do see to it. ' * 100}"),
    ("query", "literal lost", REWRITTEN.replace("Vik", "there")),
    ("query", "value added", REWRITTEN.replace("one boat", "one boat by 9 o'clock")),
    ("query", "tool named", f"{REWRITTEN} Use book_crossing."),
    ("query", "result told, value added", f"{REWRITTEN} Take s-310 or S-310."),
    ("query", "condition told", f"{REWRITTEN} It may be impossible to do."),
    ("private", "value still there", f"{PRIVATE} It was t 7715."),
    ("private", "same as before, value still there", QUERY),
    ("plan", "empty, step missing", ""),
    ("plan", "no prose", f"[{PLAN}]"),
    ("plan", "too long", PLAN + " I take care." * 400),
    ("plan", "step missing", PLAN.replace("check_space", "somebody")),
    ("plan", "unknown tool", f"{PLAN} Then I use rate_trip."),
    ("plan", "value added", f"{PLAN} It leaves at 18:45."),
    ("plan", "result told, value added", f"{PLAN} That is S-310."),
    ("plan", "", f"1. {PLAN} 4) The booking_id is from step 3. I wait for sailing_id."),
]


@pytest.mark.parametrize(("kind", "expected", "text"), BROKEN_RULES)
def test_each_rule_of_texts(kind: Kind, expected: str, text: str) -> None:
    answer = {"query": text, "removed": "T-7715"} if kind == "private" else {kind: text}
    assert ", ".join(codes(kind, answer)) == expected
    assert codes("private", {"query": PRIVATE, "removed": "4"}) == ["not removable"]


TOOLS: dict[str, Any] = {
    "name taken": tool("getTides", "Shows what a museum has on view.", room="string"),
    "like a needed tool": tool("seek_trips", "Lists sailings between two harbours.", a="string"),
    "other naming style": tool("rentCabin", "Lets a cabin for the night.", cabin="string"),
    "too long": tool("rent_cabin", "Lets a cabin to people. " * 30, cabin="string"),
    "condition told": tool("rent_cabin", "An unrelated tool for cabins.", cabin="string"),
    "task quoted": tool("rent_cabin", "Lets a cabin at Vik.", cabin="string"),
}


@pytest.mark.parametrize("code", TOOLS)
def test_each_rule_of_tools(code: str) -> None:
    answer = {"tools": [INVENTED[1], TOOLS[code]]}
    found = codes("distractors", answer)
    assert found == (["name taken", "other naming style"] if code == "name taken" else [code])
    kept = read_reply(task("distractors"), json.dumps(answer)).value
    assert kept == {"tools": [INVENTED[1]]}  # the others count all the same


CABIN = tool("rent_cabin", "Lets a cabin.", cabin="string")
INVALID: list[Any] = [
    "rent_cabin",
    CABIN | {"name": "rent cabin"},
    CABIN | {"parameters": ["cabin"]},
    CABIN | {"parameters": {"type": "object", "properties": {"cabin": {"description": "which"}}}},
    CABIN | {"parameters": {"type": "object", "properties": {}, "required": ["cabin"]}},
]


def test_definitions_that_are_invalid_or_none_or_come_twice_are_complaints() -> None:
    for definition in INVALID:
        reading = read_reply(task("distractors"), json.dumps({"tools": [definition]}))
        assert [each.code for each in reading.complaints] == ["definition invalid"]
        assert reading.complaints[0].text.startswith("Tool 1 is no valid definition: ")
        assert reading.value is None
    for none in ([], "none", {}):
        assert codes("distractors", {"tools": none}) == ["empty"]
    assert codes("distractors", {"tools": [*INVENTED, INVENTED[0]]}) == ["name taken"]


def test_parameters_are_described_where_the_others_are() -> None:
    origin = {"origin": {"type": "string", "description": "the harbour"}}
    described = {**FERRY[0], "parameters": {"type": "object", "properties": origin}}
    seed = seed_of(CROSSING[0], tools=(described,))
    assert codes("distractors", {"tools": INVENTED}, seed) == ["parameter not described"]


# Trajectories -------------------------------------------------------------------------------------


def simulated(**parts: Any) -> list[str]:
    """Complaints about a trajectory; see ``journey``."""
    return codes("trajectory", journey(**parts))


@pytest.mark.parametrize("code", FAULTY)
def test_each_rule_of_trajectories(code: str) -> None:
    assert simulated() == []
    others = {"no new tool": {"tool not documented"}}
    for faulty in FAULTY[code]:
        assert set(simulated(**dict(faulty))) - others.get(code, set()) == {code}, faulty


@given(st.lists(st.dictionaries(st.sampled_from(["role", "content", "tool_calls"]), VALUES)))
def test_no_messages_break_the_rules(listed: list[Any]) -> None:
    answer = {"query": ASKED, "tools": listed, "messages": listed}
    assert read_reply(task("trajectory"), json.dumps(answer)).complaints


# Requirements -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("empty", ""),
        ("tool named", "Only a signed receipt of pay_crossing counts, as check_space shows."),
        ("tool named", "Only a receipt of pay_crossing counts."),
        ("no demand", "A receipt would be nice."),
        ("other way offered", "Only a tool's receipt counts; otherwise note it by hand."),
        ("heading", "Important: only what a tool has recorded counts."),
        ("heading", "ONLY what a tool has recorded counts, WITHOUT doubt."),
        ("value added", "Only what a tool has recorded by 18:30 counts."),
        ("condition told", "Only a tool's record counts, so it is impossible to do."),
        ("too long", "Only a tool counts. Memory is void. So are notes."),
    ],
)
def test_each_rule_of_requirements(code: str, fault: str) -> None:
    assert codes("removal", {"sentence": fault}) == [code]
    if code in ("empty", "no demand"):
        return
    for kind, tool_name in task("contradictory").demanded.items():
        text = f"{fault.replace('pay_crossing', tool_name)[:-1]}, and {tool_name} is offline."
        wanted = [] if fault.startswith("Only a receipt of") else [code]
        assert codes("contradictory", REQUIREMENTS | {kind: text}) == wanted
        named = {kind: "Only a tool's receipt counts, and it is offline."}
        assert codes("contradictory", REQUIREMENTS | named) == ["tool not named"]
        outage = {kind: f"Only what {tool_name} returns counts."}
        assert codes("contradictory", REQUIREMENTS | outage) == ["no outage"]


# Tasks --------------------------------------------------------------------------------------------

NO_TASK: list[tuple[Kind, Seed, str]] = [
    ("query", Seed(trajectory=seed_of().trajectory), "no calls in the solution"),
    ("plan", seed_of(query=" "), "no query"),
    ("plan", seed_of(plan="I go."), "the source has a plan"),
    ("private", seed_of(query="Take us across."), "no value of the query that nobody could know"),
    ("query", seed_of(tools=({"name": 3},)), "tools that can't be read"),
]


def test_seeds_that_there_is_no_task_for() -> None:
    for kind, seed, reason in NO_TASK:
        assert str(task_of(seed, kind)).startswith(reason)
    run = seed_of().trajectory
    steps = (*run.steps, TrajectoryStep(source="user", text="And a meal."))
    seed = replace(seed_of(), trajectory=replace(run, steps=steps))
    assert task_of(seed, "query") == "the query is not one message of the user's"
    assert isinstance(task_of(seed, "plan"), WritingTask)


def test_tasks_that_share_a_digest_may_share_an_answer() -> None:
    assert task("query").digest == task("query", seed_of(name="other")).digest
    others = [seed_of(query=f"{QUERY} Please."), seed_of(tools=FERRY[:5]), seed_of(CROSSING[0])]
    assert len({task("query", each).digest for each in (seed_of(), *others)}) == 4


# Settings -----------------------------------------------------------------------------------------


def test_what_is_written_follows_from_the_splits() -> None:
    config = WriteConfig(model="openai/gpt-5")
    assert config.kinds(["step_wise_planning", "step_wise_tool_broken"]) == ("query",)
    assert config.kinds(["holistic_planning"]) == ("query", "plan")
    assert config.kinds(["step_wise_tool_extraneous"]) == ("query", "distractors")
    assert config.kinds(["holistic_unsolvable"]) == ("query", "plan", "private")
    assert WriteConfig(write="private,query").kinds(["holistic_planning"]) == ("query", "private")
    with pytest.raises(
        OptionError, match=r"--write: expected some of trajectory, query, plan, .*'poem'"
    ):
        WriteConfig(write=["poem"])
