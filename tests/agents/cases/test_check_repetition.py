"""What repeats is found, and what only looks like it is not proven."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from apbjudge.agents.cases.checks.repetition import Repetition

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


# Ids and contents ---------------------------------------------------------------------------------

REPLIES = [
    reply("one"),
    reply("two", format_demanded=True, finish_reason="stop"),
    reply("three", tools=BASE["tools"][::-1], system_prompt="You help."),
]
"""Replies to a case, whatever their tested models got beside it."""
AGAIN = other(tools=BASE["tools"][::-1], source="elsewhere", tool_chain=[{"name": "lend_book"}])
SEEN: list[tuple[list[Row], list[str], int]] = [
    ([BASE, BASE], ["duplicate-id"], 1),
    (REPLIES, [], 1),
    ([BASE, *REPLIES], [], 1),
    ([*REPLIES, BASE, BASE], ["duplicate-id"], 1),
    ([reply("one"), reply("two", query="Else.")], ["duplicate-id"], 1),
    ([reply("one"), reply("two", files=["x.png"])], ["duplicate-id"], 1),
    ([reply("one"), reply("two", split="step_wise_planning")], ["duplicate-id"], 1),
    ([BASE, other()], ["duplicate-case"], 2),
    ([BASE, AGAIN], ["duplicate-case"], 2),
    ([BASE, other(query=QUERY.upper())], ["near-duplicate"], 2),
    ([BASE, other(query=f"{QUERY} Thanks!")], ["near-duplicate"], 2),
    ([BASE, other(query="When do you open, and is there a room to read in?")], [], 2),
]


def test_what_repeats_and_what_does_not() -> None:
    for rows, checks, n in SEEN:
        assert seen(rows) == (checks, n)
        if "near-duplicate" not in checks:
            assert seen(rows, thorough=False) == (checks, n)


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


def test_levels_that_are_not_nested_or_differ_in_more() -> None:
    two = level(2, "open_window", "water_plant")
    assert seen([level(1, "dust_shelf"), two])[0] == ["levels-not-nested"]
    assert seen([level(1, "dust_shelf"), level(2, "open_window")])[0] == ["levels-not-nested"]
    fields = {"system_prompt": "You help."}
    assert seen([level(1, "dust_shelf"), level(2, "dust_shelf") | fields])[0] == ["levels-differ"]
    assert seen([level(0), level(1, "dust_shelf") | fields])[0] == ["levels-differ"]


def test_levels_of_other_cuts_are_not_compared() -> None:
    cut = {"split": "step_wise_tool_extraneous", "trajectory_prefix": []}
    other_cut = cut | {"trajectory_prefix": [{"role": "user", "content": "Hello."}]}
    for changes in (other_cut, cut | {"prediction_horizon": 2}):
        assert seen([level(1, "dust_shelf") | cut, level(2, "open_window") | changes])[0] == []
