"""What code demands of a model's texts: each rule has an answer that breaks it alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.construction.literals import (
    is_worded,
    literals_of,
    numbers_in,
    results_of,
    written_at,
)
from apbjudge.construction.seeds import Seed
from apbjudge.construction.writing.config import KINDS, Kind, WriteConfig
from apbjudge.construction.writing.rules import names_tool, read_reply, style_of
from apbjudge.construction.writing.tasks import WritingTask, task_of, with_query
from apbjudge.errors import OptionError
from apbjudge.records.trajectories import TrajectoryStep

from .worlds import CROSSING, FERRY, QUERY, seed_of, tool
from .writers import GOOD, INVENTED, PLAN, PRIVATE, REWRITTEN


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


def test_a_literal_is_kept_in_the_spelling_of_the_query() -> None:
    calls = (("find_sailings", {"origin": "VIK", "day": " 2026-08-14"}, None),)
    query = "From  vik on 2026-08-14 with 1,500 crates."
    assert literals_of(seed_of(*calls, query=query)) == ("vik", "2026-08-14")
    calls = (("load", {"crates": 1500.0, "is_big": True, "x": "a"}, None),)
    assert literals_of(seed_of(*calls, query=query)) == ("1,500",)


def test_values_that_come_from_results_are_no_literals() -> None:
    seed = seed_of(query=f"{QUERY} It may be S-310.")
    assert "S-310" not in literals_of(seed)
    assert results_of(seed) == ("B-9021",)


REMOVABLE: dict[str, dict[str, Any]] = {
    "a tool states it": {"tools": (*FERRY, tool("close", "Closes account T-7715.", x="string"))},
    "another result states it": {
        "calls": [*CROSSING[:3], ("who", {}, "it is t-7715"), CROSSING[3]]
    },
    "it is optional": {
        "tools": (
            *FERRY[:3],
            tool("pay_crossing", "Pays.", "account", booking_id="string", account="string"),
        )
    },
}


@pytest.mark.parametrize("name", REMOVABLE)
def test_only_what_nobody_could_know_is_removable(name: str) -> None:
    fields = dict(REMOVABLE[name])
    calls = fields.pop("calls", CROSSING)
    needs = {1: {"sailing_id": 0}, 2: {"sailing_id": 0}, len(calls) - 1: {"booking_id": 2}}
    seed = seed_of(*calls, needs=needs, **fields)
    assert "T-7715" in literals_of(seed)
    assert task("private", seed).removable == ("Vik", "2026-08-14")


def test_what_shares_words_with_another_literal_is_not_removable() -> None:
    calls = (
        ("find_sailings", {"origin": "Vik bay", "day": "2026-08-14"}, None),
        ("get_tides", {"harbour": "Vik"}, None),
    )
    seed = seed_of(*calls, query="From Vik bay on 2026-08-14.")
    assert literals_of(seed) == ("Vik bay", "2026-08-14", "Vik")
    assert task("private", seed).removable == ("2026-08-14",)


@pytest.mark.parametrize(
    ("value", "text", "found"),
    [
        ("4", "for 4 people", "4"),
        ("4", "on 2026-08-4", None),
        ("14", "on 2026-08-14", None),
        ("4", "4.5 metres", None),
        ("4", "at 4.", "4"),
        ("08", "at 10:08", None),
        ("ada", "ada@x.example", None),
        ("T-7715", "t-7715", None),
        ("lock", "Lock it", "Lock"),
        ("two words", "Two\n  words here", "Two words"),
        ("", "x", None),
    ],
)
def test_values_are_looked_for_as_wholes(value: str, text: str, found: str | None) -> None:
    assert written_at(value, text) == found


@given(st.text(min_size=1), st.text(), st.text())
def test_a_value_between_spaces_is_always_there(value: str, before: str, after: str) -> None:
    if value.split():
        assert written_at(value, f"{before} {value} {after}") is not None
        if any(c.isalnum() for c in value.casefold()):
            assert is_worded(value, f"{before} {value} {after}")


def test_a_value_is_worded_in_any_spelling() -> None:
    assert is_worded("T-7715", "account t 7715 it is")
    assert is_worded("2026-08-14", "20260814")
    assert not is_worded("T-7", "t 77")
    assert not is_worded("--", "words")


def test_numbers_are_words_with_a_digit() -> None:
    text = "On 2026-08-14, (4 people): pay $20.50 to B-9021. Then 4."
    assert numbers_in(text) == ["2026-08-14", "4", "$20.50", "B-9021"]


# Answers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["{}", "Here it is:\n```json\n{}\n```", "<think>[1]</think>{}"])
def test_a_good_answer_is_accepted_in_any_wrapping(kind: Kind, form: str) -> None:
    reading = read_reply(task(kind), form.replace("{}", json.dumps(GOOD[kind])))
    assert reading.complaints == ()
    assert reading.value == GOOD[kind]


def test_a_list_of_tools_is_an_answer_too() -> None:
    assert codes("distractors", INVENTED) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reply", ["", "Sure!", "[]", '{"text": "x"}', '{"query": ', "null", "7"])
def test_a_reply_without_the_object_is_refused(kind: Kind, reply: str) -> None:
    reading = read_reply(task(kind), reply)
    assert [each.code for each in reading.complaints] == ["no JSON"]
    assert reading.value is None


@given(
    st.sampled_from(KINDS),
    st.text()
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=6) | st.integers(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["query", "plan", "tools", "removed", "name", "parameters", "type"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    ).map(json.dumps),
)
def test_no_reply_breaks_the_rules(kind: Kind, reply: str) -> None:
    reading = read_reply(task(kind), reply)
    assert reading.complaints or reading.value is not None


QUERIES: dict[str, str] = {
    "empty": "  ",
    "same as before": QUERY.upper().replace(" VIK", " Vik"),
    "too long": f"{REWRITTEN} {'Do see to it. ' * 100}",
    "literal lost": REWRITTEN.replace("Vik", "there"),
    "value added": REWRITTEN.replace("one boat", "one boat by 9 o'clock"),
    "tool named": f"{REWRITTEN} Use book_crossing.",
    "result told": f"{REWRITTEN} Take s-310 or S-310.",
    "condition told": f"{REWRITTEN} It may be impossible to do.",
}


@pytest.mark.parametrize("code", QUERIES)
def test_each_rule_of_queries(code: str) -> None:
    found = codes("query", {"query": QUERIES[code]})
    expected = {
        "empty": ["empty", "literal lost"],
        "result told": ["result told", "value added"],
    }
    assert found == expected.get(code, [code])


@pytest.mark.parametrize("value", [None, 7, ["x"], {"a": 1}])
def test_a_query_that_is_no_text_is_empty(value: Any) -> None:
    assert "empty" in codes("query", {"query": value})


def test_what_the_old_query_said_may_be_said_again() -> None:
    query = f"{QUERY} Use book_crossing, or say that it is unsolvable."
    text = f"{REWRITTEN} Use book_crossing, unless it is unsolvable."
    assert codes("query", {"query": text}, seed_of(query=query)) == []


PRIVATES: dict[str, tuple[str, Any]] = {
    "not removable": (PRIVATE, "4"),
    "value still there": (f"{PRIVATE} It was t 7715.", "T-7715"),
    "literal lost": (PRIVATE.replace("Vik", "home"), "T-7715"),
    "value added": (f"{PRIVATE} Not T-8000.", "T-7715"),
    "tool named": (PRIVATE.replace("cover it", "serve pay_crossing"), "T-7715"),
    "condition told": (f"{PRIVATE} Nobody else knows it.", "T-7715"),
    "same as before": (QUERY, "T-7715"),
}


@pytest.mark.parametrize("code", PRIVATES)
def test_each_rule_of_private_references(code: str) -> None:
    query, removed = PRIVATES[code]
    expected = ["same as before", "value still there"] if code == "same as before" else [code]
    assert codes("private", {"query": query, "removed": removed}) == expected


PLANS: dict[str, str] = {
    "empty": "",
    "no prose": f"[{PLAN}]",
    "too long": PLAN + " I take care." * 400,
    "step missing": PLAN.replace("check_space", "somebody"),
    "unknown tool": f"{PLAN} Then I use rate_trip.",
    "value added": f"{PLAN} It leaves at 18:45.",
    "result told": f"{PLAN} That is S-310.",
}


@pytest.mark.parametrize("code", PLANS)
def test_each_rule_of_plans(code: str) -> None:
    found = codes("plan", {"plan": PLANS[code]})
    expected = {
        "empty": ["empty", "step missing"],
        "result told": ["result told", "value added"],
    }
    assert found == expected.get(code, [code])


def test_a_plan_may_number_its_steps_and_name_parameters() -> None:
    text = f"1. {PLAN} 4) The booking_id is from step 3. I wait for sailing_id."
    assert codes("plan", {"plan": text}) == []


TOOLS: dict[str, Any] = {
    "definition invalid": {"name": "rent cabin", "description": "Lets a cabin."},
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


INVALID: dict[str, Any] = {
    "no object": "rent_cabin",
    "no name": {"description": "Lets a cabin."},
    "two names": {"name": "a_b", "tool_name": "c_d", "description": "Lets a cabin."},
    "no description": {"name": "rent_cabin", "description": "Cabin"},
    "no schema": {"name": "rent_cabin", "description": "Lets a cabin.", "parameters": ["cabin"]},
    "prose": {"name": "rent_cabin", "description": "Lets a cabin.", "parameters": "the cabin"},
    "no type": {
        **tool("rent_cabin", "Lets a cabin."),
        "parameters": {"type": "object", "properties": {"cabin": {"description": "which"}}},
    },
    "odd type": tool("rent_cabin", "Lets a cabin.", cabin="cabin"),
    "undefined": {
        **tool("rent_cabin", "Lets a cabin."),
        "parameters": {"type": "object", "properties": {}, "required": ["cabin"]},
    },
}


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_definition_is_named(name: str) -> None:
    reading = read_reply(task("distractors"), json.dumps({"tools": [INVALID[name]]}))
    assert [each.code for each in reading.complaints] == ["definition invalid"]
    assert reading.complaints[0].text.startswith("Tool 1 is no valid definition: ")
    assert reading.value is None


def test_no_tools_or_one_twice_are_complaints() -> None:
    for none in ([], "none", {}):
        assert codes("distractors", {"tools": none}) == ["empty"]
    assert codes("distractors", {"tools": [*INVENTED, INVENTED[0]]}) == ["name taken"]


def test_more_tools_than_asked_for_are_left_out() -> None:
    many = [
        tool(f"rent_{n * 'a'}_boat", f"Lets boat type {'a' * n}.", x="string") for n in range(1, 15)
    ]
    reading = read_reply(task("distractors"), json.dumps({"tools": many}))
    assert reading.complaints == ()
    assert reading.value is not None
    assert len(reading.value["tools"]) == 10


def test_a_cost_that_a_model_makes_up_is_left_out() -> None:
    reading = read_reply(task("distractors"), json.dumps({"tools": [{**INVENTED[0], "cost": 3}]}))
    assert reading.value == {"tools": [INVENTED[0]]}


def test_parameters_are_described_where_the_others_are() -> None:
    described = {
        **FERRY[0],
        "parameters": {
            "type": "object",
            "properties": {"origin": {"type": "string", "description": "the harbour"}},
        },
    }
    seed = seed_of(CROSSING[0], tools=(described,))
    assert codes("distractors", {"tools": INVENTED}, seed) == ["parameter not described"]


def test_styles_of_names() -> None:
    assert style_of(["find_a", "findB", "see_c", "go"]) == "snake_case"
    assert style_of(["findA", "seeB"]) == "camelCase"
    assert style_of(["FindA"]) == "PascalCase"
    assert style_of(["find-a"]) == "kebab-case"
    assert style_of(["a.find"]) == "dotted.case"
    assert style_of(["find", "see"]) == style_of(["find_a", "seeB"]) == style_of([]) == ""


def test_words_that_are_names_of_tools_may_be_used_as_words() -> None:
    assert not names_tool("search", "I search for it with a tool")
    for text in ("call search(x)", "the search tool", "use `search`"):
        assert names_tool("search", text)
    assert names_tool("find_sailings", "Find_Sailings!")
    assert names_tool("findTrip", "with findtrip")
    assert not names_tool("find_sailings", "find sailings, my_find_sailings2")


# Tasks --------------------------------------------------------------------------------------------

NO_TASK: dict[str, tuple[Kind, Seed, str]] = {
    "no calls": ("query", Seed(run=seed_of().run), "no calls in the solution"),
    "no query": ("plan", seed_of(query=" "), "no query"),
    "own plan": ("plan", seed_of(plan="I go."), "the source has a plan"),
    "nothing to remove": (
        "private",
        seed_of(query="Take us across."),
        "no value of the query that nobody could know",
    ),
    "bad tools": ("query", seed_of(tools=({"name": 3},)), "tools that can't be read"),
}


@pytest.mark.parametrize("name", NO_TASK)
def test_seeds_that_there_is_no_task_for(name: str) -> None:
    kind, seed, reason = NO_TASK[name]
    found = task_of(seed, kind)
    assert isinstance(found, str)
    assert found.startswith(reason)


def said(seed: Seed, *texts: str) -> Seed:
    """The seed with further messages of the user's."""
    steps = (*seed.run.steps, *(TrajectoryStep(source="user", text=text) for text in texts))
    object.__setattr__(seed.run, "steps", steps)
    return seed


def test_a_query_of_several_messages_is_not_rewritten() -> None:
    assert task_of(said(seed_of(), "And a meal."), "query") == (
        "the query is not one message of the user's"
    )
    assert isinstance(task_of(said(seed_of(), "And a meal."), "plan"), WritingTask)


def test_a_rewritten_query_is_the_first_message_too() -> None:
    seed = with_query(seed_of(), REWRITTEN)
    assert (seed.run.query, seed.run.steps[0].text) == (REWRITTEN, REWRITTEN)
    assert seed.run.steps[1:] == seed_of().run.steps[1:]
    assert seed.repairs == ("query rewritten by a model",)
    silent = seed_of()
    object.__setattr__(silent.run, "steps", silent.run.steps[1:])
    assert with_query(silent, REWRITTEN).run.steps == silent.run.steps


def test_no_result_is_in_what_a_prompt_shows() -> None:
    for kind in KINDS:
        shown = task(kind).model_dump(exclude={"results"})
        assert "S-310" not in json.dumps(shown)


def test_tasks_that_share_a_digest_may_share_an_answer() -> None:
    assert task("query").digest == task("query", seed_of(name="other")).digest
    others = [seed_of(query=f"{QUERY} Please."), seed_of(tools=FERRY[:5]), seed_of(CROSSING[0])]
    assert len({task("query", each).digest for each in (seed_of(), *others)}) == 4
    assert len({task(kind).digest for kind in KINDS}) == 4


# Settings -----------------------------------------------------------------------------------------


def test_what_is_written_follows_from_the_splits() -> None:
    config = WriteConfig(model="openai/gpt-5")
    assert config.kinds(["step_wise_planning", "step_wise_tool_broken"]) == ("query",)
    assert config.kinds(["holistic_planning"]) == ("query", "plan")
    assert config.kinds(["step_wise_tool_extraneous"]) == ("query", "distractors")
    assert config.kinds(["holistic_unsolvable"]) == ("query", "plan", "private")
    assert WriteConfig(write="private,query").kinds(["holistic_planning"]) == ("query", "private")
    with pytest.raises(OptionError, match=r"--write: expected some of query, plan, .*'poem'"):
        WriteConfig(write=["poem"])
