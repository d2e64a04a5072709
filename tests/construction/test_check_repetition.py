"""What repeats is found, and what only looks like it is not proven."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from apbjudge.construction.checks.repetition import Repetition

from .checking import EXAMPLES, case_of

Row = dict[str, Any]
QUERY = "Please lend me the book about the tides, and tell me when it has to be back here."


def tool(name: str, **fields: Any) -> Row:
    return {"name": name, "description": f"Does {name}.", **fields}


BASE: Row = {
    "id": "a",
    "split": "holistic_planning",
    "query": QUERY,
    "system_prompt": "You help readers.",
    "tools": [tool("find_book"), tool("lend_book")],
    "plan": "Find it and lend it.",
    "tool_chain": [{"name": "find_book"}, {"name": "lend_book"}],
}


def other(**fields: Any) -> Row:
    return {**deepcopy(BASE), "id": "b", **fields}


def reply(model: str, **fields: Any) -> Row:
    return {**deepcopy(BASE), "tested_model": model, "model_response": "{}", **fields}


def seen(rows: Iterable[Row | tuple[Path, Row]], **settings: Any) -> tuple[list[str], int]:
    """The checks that find something, in order, and the number of cases."""
    repetition, found, n = Repetition(**settings), list[str](), 0
    for line, entry in enumerate(rows, start=1):
        file, row = entry if isinstance(entry, tuple) else (None, entry)
        is_new, findings = repetition.add(case_of(row, line, file))
        found += [finding.check for finding in findings]
        n += is_new
    return found + [finding.check for finding in repetition.findings()], n


# Ids ----------------------------------------------------------------------------------------------


def test_an_id_names_one_case() -> None:
    assert seen([BASE, BASE]) == (["duplicate-id"], 1)
    assert seen([BASE, BASE], thorough=False) == (["duplicate-id"], 1)


def test_replies_to_a_case_are_one_case() -> None:
    """Whatever their tested models got beside it, and whether the case stands alone as well."""
    replies = [
        reply("one"),
        reply("two", format_demanded=True, finish_reason="stop"),
        reply("three", tools=BASE["tools"][::-1], system_prompt="You help."),
    ]
    assert seen(replies) == ([], 1)
    assert seen([BASE, *replies]) == ([], 1)
    assert seen([*replies, BASE]) == ([], 1)
    assert seen([*replies, BASE, BASE]) == (["duplicate-id"], 1)


def test_replies_to_different_cases_of_one_id() -> None:
    for changes in ({"query": "Else."}, {"files": ["x.png"]}, {"split": "step_wise_planning"}):
        assert seen([reply("one"), reply("two", **changes)]) == (["duplicate-id"], 1)


# Contents -----------------------------------------------------------------------------------------


def test_a_case_that_occurs_twice() -> None:
    assert seen([BASE, other()]) == (["duplicate-case"], 2)
    again = other(tools=BASE["tools"][::-1], source="elsewhere", tool_chain=[{"name": "lend_book"}])
    assert seen([BASE, again]) == (["duplicate-case"], 2)
    assert seen([BASE, again], thorough=False) == (["duplicate-case"], 2)


def test_equal_paths_in_other_folders_may_be_other_files() -> None:
    picture = {"files": [{"type": "image", "path": "plant.png"}]}
    first, second = {**BASE, **picture}, other(**picture)
    assert seen([first, second]) == (["duplicate-case"], 2)
    apart = [(EXAMPLES / "images" / "one.jsonl", first), (EXAMPLES / "two.jsonl", second)]
    assert "duplicate-case" not in seen(apart)[0]


def test_what_makes_a_case_another_one() -> None:
    for fields in (
        {"query": QUERY.replace("the tides", "> 5 tides")},
        {"system_prompt": "You help readers. Nobody may borrow more than 3 books."},
        {"tools": [tool("find_book", cost=2), tool("lend_book", cost=3)]},
        {"files": ["images/plant.png"]},
        {"initial_state": {"lent": ["tides"]}},
        {"messages": [{"role": "user", "content": "It is Monday."}]},
    ):
        assert "duplicate-case" not in seen([BASE, other(**fields)])[0], fields


def test_the_words_of_a_query_alone_are_suspected() -> None:
    assert seen([BASE, other(query=QUERY.upper())]) == (["near-duplicate"], 2)
    assert seen([BASE, other(query=f"{QUERY} Thanks!")]) == (["near-duplicate"], 2)
    assert seen([BASE, other(query="When do you open, and is there a room to read in?")])[0] == []


@given(
    rows=st.lists(
        st.tuples(st.sampled_from(["x", "y", "z"]), st.booleans(), st.integers(0, 1)), max_size=6
    )
)
def test_what_is_proven_is_so(rows: list[tuple[str, bool, int]]) -> None:
    """Against a plain list of all that was seen."""
    repetition, cases = Repetition(), list[tuple[str, str]]()
    for line, (query, is_listed_backwards, named) in enumerate(rows, start=1):
        tools = BASE["tools"][::-1] if is_listed_backwards else BASE["tools"]
        name = f"{query}{named}" if named else f"r{line}"
        _, findings = repetition.add(case_of({**BASE, "id": name, "query": query, "tools": tools}))
        expected = []
        if any(name == earlier for earlier, _ in cases):
            expected = ["duplicate-id"]
        elif any(query == earlier for _, earlier in cases):
            expected = ["duplicate-case"]
        if expected != ["duplicate-id"]:
            cases.append((name, query))
        assert [finding.check for finding in findings] == expected


# Levels -------------------------------------------------------------------------------------------

EXTRA = [tool(name) for name in ("dust_shelf", "open_window", "water_plant")]


def level(n: int, *names: str, **fields: Any) -> Row:
    extra = [each for each in EXTRA if each["name"] in names]
    return other(
        id=f"l{n}",
        case_id="a",
        split="holistic_tool_extraneous",
        tools=[*BASE["tools"], *extra],
        extraneous_tool_names=list(names),
        **fields,
    )


def test_levels_that_are_not_nested() -> None:
    rows = [level(1, "dust_shelf"), level(2, "open_window", "water_plant")]
    assert seen(rows)[0] == ["levels-not-nested"]
    assert seen([level(1, "dust_shelf"), level(2, "open_window")])[0] == ["levels-not-nested"]


def test_levels_that_differ_in_more() -> None:
    fields = {"system_prompt": "You help."}
    assert seen([level(1, "dust_shelf"), level(2, "dust_shelf") | fields])[0] == ["levels-differ"]
    assert seen([level(0), level(1, "dust_shelf") | fields])[0] == ["levels-differ"]


def test_levels_of_other_cuts_are_not_compared() -> None:
    cut = {"split": "step_wise_tool_extraneous", "trajectory_prefix": []}
    other_cut = cut | {"trajectory_prefix": [{"role": "user", "content": "Hello."}]}
    for changes in (other_cut, cut | {"prediction_horizon": 2}):
        assert seen([level(1, "dust_shelf") | cut, level(2, "open_window") | changes])[0] == []
