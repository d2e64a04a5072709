"""Cases that can't be solved: what was taken away is gone, and nothing else."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import orjson
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from apbjudge.agents.cases.cases import Context, Reject, Row, row_id
from apbjudge.agents.cases.likeness import may_serve
from apbjudge.agents.cases.limits import is_amount
from apbjudge.agents.cases.literals import is_worded, numbers_in, places_of
from apbjudge.agents.cases.queries import with_sentences, without_sentence
from apbjudge.agents.cases.seeds import Seed
from apbjudge.agents.cases.transforms.unsolvable import (
    compliance_lock,
    contradictory_constraints,
    dynamic_state,
    information_missing,
    missing_dimension,
    tool_removal,
    visual_missing,
)
from apbjudge.records import Construction, FileRef, Item
from apbjudge.records import Row as CaseRow
from apbjudge.records.tools import read_tool

from .worlds import CROSSING, FERRY, QUERY, context_of, seed_of, tool

Transform = Callable[[Seed, Context], Any]
OUTAGES: tuple[Transform, ...] = (missing_dimension, compliance_lock, dynamic_state)


def row_of(transform: Transform, seed: Seed, *, number: int = 7) -> Row:
    """The one row that a transform makes, which is the same when made again and can be read."""
    (row,) = transform(seed, context_of(seed, seed=number))
    assert not isinstance(row, Reject), row.reason
    (again,) = transform(seed, context_of(seed, seed=number))
    assert orjson.dumps(row) == orjson.dumps(again)
    item = item_of(row)
    assert (item.split, item.form) == ("holistic_unsolvable", "plan")
    kind = item.condition.unsolvable_type
    assert transform.__name__ == claims_of(row).transform
    assert kind == ("contradictory_constraints" if transform in OUTAGES else transform.__name__)
    assert claims_of(row).twin == row_id(seed, "holistic")
    assert item.reference is not None
    assert item.reference.value == ()
    assert item.reference.plan.startswith("The task can't be done")
    return row


def item_of(row: Row) -> Item:
    return CaseRow(row, 1, parsed=True).to_case()


def claims_of(row: Row) -> Construction:
    construction = item_of(row).construction
    assert construction is not None
    return construction


def reason_of(transform: Transform, seed: Seed) -> str:
    (reject,) = transform(seed, context_of(seed))
    assert isinstance(reject, Reject), reject
    assert reject.transform == transform.__name__
    return reject.reason


# Picture ------------------------------------------------------------------------------------------

SHOT = FileRef(type="image", path="shots/jetty.png")
PICTURED = "Which harbour is in my photo, and how high is the water there?"
TIDES = ("get_tides", {"harbour": "Vik"}, {"high": "2.1 m"})


def test_a_case_without_its_picture_keeps_its_query_and_has_no_file() -> None:
    seed = seed_of(TIDES, query=PICTURED, files=(SHOT, FileRef(type="text", path="notes.txt")))
    item = item_of(row_of(visual_missing, seed))
    assert item.files == ()
    assert item.query == PICTURED
    assert item.reference is not None
    assert "picture" in item.reference.plan
    clip = FileRef(type="video", path="a.mp4")
    shown = ("get_tides", {"harbour": "a.mp4"}, {"high": "2.1 m"})
    seed = seed_of(shown, query="Which harbour is it?", files=(clip,))
    assert "video" in row_of(visual_missing, seed)["plan"]


# Tools --------------------------------------------------------------------------------------------


def left_in(row: Row) -> set[str]:
    tools = item_of(row).tools
    assert tools is not None
    return set(tools.names)


def test_a_capability_of_two_tools_is_preferred() -> None:
    tools = (*FERRY, tool("reserve_crossing", "Books places on a sailing.", people="integer"))
    removed = claims_of(row_of(tool_removal, seed_of(tools=tools))).removed_tools
    assert set(removed) == {"book_crossing", "reserve_crossing"}  # not the last, pay_crossing


def test_a_tool_that_only_ends_the_run_is_none_that_the_task_turns_on() -> None:
    fields: dict[str, Any] = {"tools": (*FERRY, tool("finish", "Ends.")), "ends": {"finish"}}
    row = row_of(tool_removal, seed_of(*CROSSING, ("finish", {}, {}), needs={}, **fields))
    assert (claims_of(row).removed_tools, row["ends"]) == (("pay_crossing",), ["finish"])
    only = seed_of(("finish", {}, {}), **fields)
    assert reason_of(tool_removal, only) == "no call that the task turns on"


@pytest.mark.parametrize("number", range(6))
def test_a_query_without_its_tools_demands_the_result_of_one_without_a_name(number: int) -> None:
    row = row_of(tool_removal, seed_of(), number=number)
    claims = claims_of(row)
    assert claims.compliance is True
    assert row["query"] == f"{QUERY} {claims.requirement}"
    assert "tool" in claims.requirement
    assert re.search("in the head|mental arithmetic", claims.requirement)
    assert not any(name in claims.requirement for name in claims.removed_tools)
    assert not re.search(r"[A-Z]{2}|:|\*", claims.requirement)
    other = seed_of(query="Bitte buche vier Plätze ab Vik und bezahle sie.")
    row = row_of(tool_removal, other, number=number)
    assert (row["query"], claims_of(row).compliance) == (other.trajectory.query, False)


def test_tools_that_may_serve_for_another() -> None:
    def may(*words: str) -> bool:
        one, other = (read_tool(tool(*each), "t") for each in (words[:2], words[2:]))
        return may_serve(one, other)

    assert may("find_tides", "Looks.", "get_tides", "Gives high water.")
    assert may("get_port", "Gives tides and more.", "check_tides", "Says if it is high.")
    assert not may("cancel_trip", "Ends a trip.", "book_trip", "Takes places.")
    assert not may("get_port", "Gives a port.", "get_tides", "Gives high water.")


# Limits -------------------------------------------------------------------------------------------

BREAD = (
    tool("order_bread", "Orders loaves.", "budget", loaves="integer", budget="number"),
    tool("bake_dough", "Bakes.", weight="number", oven_temperature="number"),
)


def assert_exclusive(row: Row, query: str, value: float) -> None:
    one, other = claims_of(row).bounds
    by_kind = {bound.kind: bound for bound in (one, other)}
    assert by_kind["at most"].value < value < by_kind["at least"].value
    assert by_kind["at most"].value > 0
    assert one.subject == other.subject
    for bound in (one, other):
        assert row["query"].count(bound.text) == 1
        assert bound.subject in bound.text
        assert bound.text[0].isupper()
        assert bound.text[-1] == "."
    assert row["query"].index(one.text) < row["query"].index(other.text)
    without = row["query"].replace(f" {one.text} {other.text}", "")
    assert without.rstrip(".") == query.rstrip(".")


@given(
    st.one_of(st.integers(2, 1700), st.decimals("0.5", "900", places=1).map(float)),
    st.sampled_from(
        [
            "Please order bread for the party with a budget of ${}.",
            "I'd like to order bread, the budget being {} euros, if you can",
            "Could you order the bread with a budget of €{}?",
        ]
    ),
    st.integers(0, 2**32),
)
def test_limits_exclude_each_other_around_the_value(value: float, phrase: str, number: int) -> None:
    query = phrase.format(value)
    seed = seed_of(("order_bread", {"budget": value}, None), tools=BREAD, query=query)
    row = row_of(contradictory_constraints, seed, number=number)
    assert_exclusive(row, query, value)
    assert left_in(row) == {"order_bread", "bake_dough"}
    texts = [bound.text for bound in claims_of(row).bounds]
    assert all(("$" in text) == ("$" in query) for text in texts)
    assert all(("€" in text) == ("€" in query) for text in texts)


def test_amounts_are_told_from_ids() -> None:
    for name in ("price", "number_of_guests", "length_of_stay_days"):
        assert is_amount(name, 9)
    for name in ("flight_number", "phone"):
        assert not is_amount(name, 9)
    for value in (True, "9", 0, 1990):
        assert not is_amount("price", value)


def test_sentences_are_added_and_numbers_looked_for_in_linear_time() -> None:
    """Quadratic time would be hours."""
    blank = "Order it." + "\n" * 1_000_000 + "x"
    assert with_sentences(blank, ["A."]) == f"{blank}. A."
    assert without_sentence("My card is 7." + "\n" * 1_000_000 + "x", 11, 12) is None
    assert numbers_in("a" * 1_000_000) == []
    assert with_sentences('She said "no."', ["A."]) == 'She said "no." A.'
    assert with_sentences("Order it, please", ["A.", "B."]) == "Order it, please. A. B."


# Outages ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", OUTAGES)
def test_a_requirement_demands_a_tool_that_is_offered_and_out_of_service(
    transform: Transform,
) -> None:
    wordings: set[str] = set()
    for number in range(6):
        row = row_of(transform, seed_of(), number=number)
        claims = claims_of(row)
        assert claims.contradiction_kind == transform.__name__
        signs = transform is compliance_lock
        assert claims.offline_tool == ("pay_crossing" if signs else "find_sailings")
        assert row["query"] == f"{QUERY} {claims.requirement}"
        assert claims.requirement.count(claims.offline_tool) in (1, 2)
        assert re.search(r"offline|is down", claims.requirement)
        assert claims.claims["limits"] == claims.requirement
        assert left_in(row) == {spec["name"] for spec in FERRY}  # so that nothing else differs
        wordings.add(claims.requirement)
    assert len(wordings) == 2


# Information --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("Lend me the book. My card number is [L-1].", "Lend me the book."),
        ("My card is '[L-1]'. Lend me the new book!", "Lend me the new book!"),
        (
            "Ask Dr. Ode for my pills. The order is: [31]. Thanks.",
            "Ask Dr. Ode for my pills. Thanks.",
        ),
        # what asks for something, says more, or is spoken of afterwards stays
        ("Show me the loans of the reader with ID [4471]. I need them soon.", None),
        ("My name is Ada and my card is [L-1]. Lend me the new book.", None),
        ("My card is [L-1], so lend me the book. I am in a hurry.", None),
        ("My friend is [Ada]. She needs a book on knots.", None),
        ("The pier is called [Vik]. Tell me how high the water is.", None),
        ("My doctor is Dr. [Ode]. Please ask for my pills.", None),
        ("The order is [31]. Cancel it.", None),
    ],
)
def test_a_value_is_taken_out_with_its_sentence_or_not_at_all(query: str, left: str | None) -> None:
    before, value, after = re.split(r"[\[\]]", query)
    asked = f"{before}{value}{after}"
    ((start, end),) = places_of(value, asked)
    assert without_sentence(asked, start, end) == left


def test_values_are_looked_for_as_a_whole() -> None:
    assert places_of("5", "5.5 or 15, 5,000 or A-5 or 5:30") == []
    assert places_of("5", "take 5, or 5.") == [(5, 6), (11, 12)]
    assert is_worded("L-20417", "card l 20417")
    assert is_worded("New Town", "in NewTown")
    assert not is_worded("Vik", "in Holm")
    assert not is_worded("--", "in Holm")


LIBRARY = (
    tool("search_shelf", "Finds a book.", "branch", title="string", branch="string"),
    tool("lend_out", "Lends something.", card_number="string", copy="string"),
)
NAMES = st.text("abdegiklmnoprstuv", min_size=4, max_size=9).map(str.capitalize)
CARDS = st.from_regex(r"[A-Z]-[0-9]{5}", fullmatch=True)
PHRASES = (
    "Please find the book '{title}' and lend it to me. My card number is {card}.",
    "I'd like to borrow a novel. The title is '{title}'. Please use card {card}.",
    "My card is {card}. Please get me the novel '{title}'. I am in a hurry!",
)


@given(NAMES, CARDS, st.sampled_from(PHRASES), st.integers(0, 2**32))
def test_a_removed_value_is_shown_nowhere_and_no_other_is_lost(
    title: str, card: str, phrase: str, number: int
) -> None:
    query = phrase.format(title=title, card=card)
    assume(all(len(places_of(value, query)) == 1 for value in (title, card)))
    calls = (
        ("search_shelf", {"title": title}, {"copy": "C-881"}),
        ("lend_out", {"card_number": card, "copy": "C-881"}, {"lent": True}),
    )
    seed = seed_of(*calls, query=query, tools=LIBRARY, needs={1: {"copy": 0}})
    (row,) = information_missing(seed, context_of(seed, seed=number))
    if isinstance(row, Reject):  # the title is part of a common word, say
        assert row.reason == "the value is stated elsewhere"
        return
    row = row_of(information_missing, seed, number=number)
    removed = claims_of(row).removed_value
    assert removed in {title, card}
    hidden = {"id", "case_id", "construction"}
    shown = {key: value for key, value in row.items() if key not in hidden}
    assert str(removed).casefold() not in json.dumps(shown).casefold()
    (kept,) = {title, card} - {removed}
    assert is_worded(kept, row["query"])
    assert "  " not in row["query"]
    assert row["query"][0].isupper()
    assert row["query"][-1] in ".!"
    assert set(row["query"].split()) < set(query.split())
    assert ("card number" if removed == card else "title") in row["plan"]


ASKED = "Please find the book 'Knots' and lend it to me. My card number is L-20417."
LEND = ("lend_out", {"card_number": "L-20417", "copy": "C-881"}, {"lent": True})


def lending(before: tuple[Any, ...] = (), query: str = ASKED, **fields: Any) -> Seed:
    """A seed whose last call lends something out; ``arguments`` are others of this call."""
    call = ("lend_out", LEND[1] | fields.pop("arguments", {}), LEND[2])
    needs = {len(before): {"copy": 0}}
    return seed_of(*before, call, query=query, needs=needs, **({"tools": LIBRARY} | fields))


def with_schema(**fields: Any) -> tuple[dict[str, Any], ...]:
    changed = deepcopy(LIBRARY[1])
    changed["parameters"]["properties"]["card_number"] |= fields
    return (LIBRARY[0], changed)


# What makes no case -------------------------------------------------------------------------------

TRIP = tool("buy_ticket", "Does what a traveller needs.")
READERS = tool("find_reader", "Gives the card numbers of readers.", surname="string")
AUNT = ("lend_out", {"card_number": "L-7", "copy": "C-1"}, {})
SHELF = ("search_shelf", {"title": "Tides"}, {"reader": "L-20417"})
CARD = FileRef(type="text", path="cards/L-20417.txt")


def pictured(query: str) -> Seed:
    return seed_of(TIDES, query=query, files=(SHOT,))


def paying(**fields: Any) -> Seed:
    return seed_of(CROSSING[-1], **fields)


def baking(query: str, **arguments: Any) -> Seed:
    return seed_of(("bake_dough", arguments, None), tools=BREAD, query=query)


def lent(query: str, **arguments: Any) -> Seed:
    return lending(query=query, arguments=arguments)


NO_CASE: Mapping[Transform, Mapping[str, list[Seed]]] = {
    visual_missing: {
        "the query names the file": [pictured("Which harbour is in Jetty.png, my photo?")],
        "the query has an address that may lead to the picture": [
            pictured("Which harbour is in the photo at https://harbours.example/1?")
        ],
        "neither query nor solution speaks of the picture": [pictured("How high is the water?")],
    },
    tool_removal: {
        "the solution calls a tool that is not offered": [paying(tools=FERRY[:3])],
        "another tool may serve": [paying(tools=(FERRY[3], TRIP, tool("run_python", "")))],
        "the query or the system prompt names the tool": [paying(query="Use pay_crossing.")],
    },
    contradictory_constraints: {
        "no amount among the arguments": [baking("Is it open on the 4th?", open=True)],
        "the query is not English": [baking("Bestelle 4 loaves Brot bis morgen.", loaves=4)],
        "the query does not state the amount by its name": [
            baking("I need a loaf for 12 people, if it is open.", weight=12),
            baking("For us the weight of 12 kg, please, not a weight of 12 g.", weight=12),
            baking("I want the weight of 12 kg, and for the oven 5.", weight=12, cake_weight=5),
            baking("I want a share (weight) of 80 % in it, please.", weight=80),
        ],
    },
    dynamic_state: {
        "the query is not English": [lent("Karte L-20417, Buch Knots.")],
        "the solution calls a tool that is not offered": [paying(tools=FERRY[:3])],
    },
    information_missing: {
        "the query is not English": [lent("Karte L-20417, Buch Knots.")],
        "no value of a required parameter is in the query word for word": [
            lent("Please lend me the book on my card.")
        ],
        "the value may be guessed": [
            lent("Please lend me a book for the year 2021.", card_number="2021"),
        ],
        "the schema supplies the value": [lending(tools=with_schema(default="L-1"))],
        "a result may state the value": [lending(before=(SHELF,))],
        "the value is stated elsewhere": [
            lent(f"{ASKED} I said l 20417."),
            lending(files=(CARD,)),
        ],
        "a tool may look the value up": [lending(tools=(*LIBRARY, READERS))],
        "another value may be taken in its place": [
            lending(query=f"{ASKED} My aunt has the card L-7, by the way.", before=(AUNT,))
        ],
        "the value has no sentence of its own; --model rewrites such queries": [
            lent("L-20417 is my card, so lend me the book.")
        ],
        "another value would be lost": [
            lent("Please lend me a book on knots. The card of Ada is L-20417.", reader="Ada")
        ],
    },
}


@pytest.mark.parametrize("transform", NO_CASE)
def test_what_may_be_solved_after_all_makes_no_case(transform: Transform) -> None:
    for reason, seeds in NO_CASE[transform].items():
        assert [reason_of(transform, seed) for seed in seeds] == [reason] * len(seeds)
    bare = dataclasses.replace(seed_of(files=(SHOT,)), calls=())
    assert reason_of(transform, bare) == "no calls in the solution"
