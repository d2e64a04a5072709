"""Checks of leaks: what a case gives away is found, and what it has to show is not at fault."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import combinations, product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.agents.cases.checks.leaks import LEAK_CHECKS, P_VALUE, Placement, chance_of_order
from apbjudge.agents.cases.findings import CaseFinding

from .checking import call, case_of, codes, findings_of, said
from .worlds import tool as offered

Row = dict[str, Any]

NAMES = ("find_book", "lend_book", "weigh_book", "bind_book", "dust_shelf", "open_window")
QUERY = "Please lend me the book about the tides, and have it bound in blue before I come."
PLAN = (
    "First look the book up by its title, then lend it to the reader, and at the end "
    "have the binder put a blue cover around it."
)


def tool(name: str, description: str = "") -> Row:
    return offered(name, description or f"Does what {name} says.", title="string")


def entry(name: str, reason: str = "") -> Row:
    return {"name": name, "parameter_description": {"title": "Tides"}, "reason": reason}


def library(**fields: Any) -> Row:
    """A whole plan in a library."""
    return {
        "id": "library-1",
        "split": "holistic_planning",
        "query": QUERY,
        "system_prompt": "You help the readers of a library.",
        "tools": [tool(name) for name in NAMES],
        "plan": PLAN,
        "tool_chain": [entry("find_book"), entry("lend_book"), entry("bind_book")],
        **fields,
    }


def called(name: str, **fields: Any) -> Row:
    return said(call(name, title="Tides"), **fields)


def next_steps(**fields: Any) -> Row:
    """The next step in the library."""
    row = library(
        split="step_wise_planning",
        prediction_horizon=1,
        trajectory_prefix=[called("find_book"), {"role": "tool", "content": "B-1"}],
        ground_truth_steps=[called("lend_book", thought="Now it can be lent.")],
    )
    del row["tool_chain"]
    return row | {"plan": ""} | fields


EXTRANEOUS = {
    "split": "holistic_tool_extraneous",
    "extraneous_tool_names": ["dust_shelf", "open_window"],
}
BROKEN = {
    "split": "step_wise_tool_broken",
    "broken_tool_name": "find_book",
    "replacement_tool": tool("seek_title"),
}
UNSOLVABLE = {"split": "holistic_unsolvable", "unsolvable_type": "tool_removal"}


def found(row: Row) -> list[str]:
    return codes(LEAK_CHECKS, row)


# One case -----------------------------------------------------------------------------------------


def quoting(query: str) -> list[Row]:
    """The tools, one of which is described in the query's words, or a parameter of it is."""
    tools = [tool(name) for name in NAMES]
    tools[3]["parameters"]["properties"]["title"]["description"] = query
    return tools


CALL_ID = [{"role": "tool", "tool_call_id": "broken_call_1", "content": "Error"}]
LEAKS: Mapping[str, list[tuple[str, Row]]] = {
    "condition-told": [
        ("system_prompt", next_steps(**BROKEN, system_prompt="find_book is broken today.")),
        ("prompt", library(**EXTRANEOUS, prompt="Ignore dust_shelf.")),
    ],
    "telling-name": [
        ("tools", library(**EXTRANEOUS | {"extraneous_tool_names": ["decoy_7"]})),
        ("tools", next_steps(**BROKEN | {"replacement_tool": tool("find_book_fallback")})),
        ("files[0].path", library(**UNSOLVABLE, files=["images/contradiction-3.png"])),
        ("trajectory_prefix", next_steps(**BROKEN, trajectory_prefix=CALL_ID)),
    ],
    "telling-id": [
        ("id", library(**EXTRANEOUS, id="x-distractors-4")),
        ("case_id", next_steps(**BROKEN, case_id="broken3")),
    ],
    "reference-quoted": [
        ("query", library(query=f"{QUERY} {PLAN}")),
        ("system_prompt", library(system_prompt=PLAN.upper())),
        ("tools", library(tools=[tool("find_book"), tool("scrub_floor", PLAN)])),
        ("trajectory_prefix", library(trajectory_prefix=[{"role": "user", "content": PLAN}])),
    ],
    "reference-named": [("query", library(query=f"{QUERY} Use find_book and lend_book."))],
    "task-in-tool": [
        ("tools", library(tools=[*quoting(""), tool("scrub_floor", QUERY)])),
        ("tools", library(tools=quoting(QUERY))),
    ],
}


@pytest.mark.parametrize("check", LEAKS)
def test_what_is_given_away_is_found(check: str) -> None:
    for field, row in LEAKS[check]:
        assert [(f.check, f.field) for f in findings_of(LEAK_CHECKS, row)] == [(check, field)]


def test_what_gives_nothing_away() -> None:
    assert found(next_steps()) == found(next_steps(**BROKEN)) == []
    assert found(library(query=f"{QUERY} Use find_book.")) == []
    assert found(library(tools=[*quoting(""), tool("scrub_floor", "Lend the book.")])) == []


def test_a_reference_may_have_the_words_of_what_came_before() -> None:
    """Of the agent, of results, of the tools that it calls, and of what it is to pass on."""
    step = next_steps(ground_truth_steps=[called("lend_book", thought=PLAN)])
    assert found(step | {"trajectory_prefix": [called("find_book", content=PLAN)]}) == []
    assert found(step | {"trajectory_prefix": [{"role": "tool", "content": PLAN}]}) == []
    assert found(library(tools=[tool("find_book", PLAN)])) == []
    passed = entry("lend_book") | {"parameter_description": {"title": QUERY}}
    assert found(library(tool_chain=[passed])) == []


def later(text: str) -> list[Row]:
    return [called("bind_book"), {"role": "tool", "name": "bind_book", "content": text}]


def test_a_file_of_a_later_step() -> None:
    steps = later("saved images/plant.png")
    row = next_steps(files=["images/plant.png"], reference_remaining_steps_json=json.dumps(steps))
    (finding,) = findings_of(LEAK_CHECKS, row)
    assert (finding.check, finding.certainty) == ("file-past-cut", "suspected")
    assert found(row | {"query": f"{QUERY} See plant.png."}) == []
    seen = [{"role": "tool", "content": "took images/plant.png"}]
    assert found(row | {"trajectory_prefix": seen}) == []
    assert found(row | {"split": "holistic_planning", "tool_chain": []}) == []
    for text in ("saved images/house_plant.png", "plant.png-2"):  # another file
        row["reference_remaining_steps_json"] = json.dumps(later(text))
        assert found(row) == []


def test_the_numbers_of_screens() -> None:
    """Two messages of the agent, and the state after them; no dates, and no frames of a video."""
    assert found(next_steps(files=["step_9.png"])) == ["frame-past-cut"]
    for name in ("step_2.png", "screenshot_20260814.png", "frame_40.jpg"):
        assert found(next_steps(files=[name])) == []


# All cases ----------------------------------------------------------------------------------------


def placed(rows: Iterable[Row], file: Path | None = None) -> list[CaseFinding]:
    placement = Placement()
    for line, row in enumerate(rows, start=1):
        placement.add(case_of(row, line, file))
    return list(placement.findings())


def listed(number: int, order: Iterable[str], **fields: Any) -> Row:
    return library(id=f"r{number}", tools=[tool(name) for name in order], **fields)


def shuffled(number: int) -> list[str]:
    order = list(NAMES)
    Random(number).shuffle(order)
    return order


def test_distractors_at_one_end() -> None:
    used = ["bind_book", "lend_book", "find_book", "weigh_book"]
    others = ["dust_shelf", "open_window"]
    for order, where, n in (([*used, *others], "end", 6), ([*others, *used], "beginning", 0)):
        (finding,) = placed(listed(at, order, **EXTRANEOUS) for at in range(6))
        assert (finding.check, finding.line, finding.case) == ("distractors-placed", 0, None)
        assert f"in 6 cases distractors stand towards the {where}" in finding.message
        assert f"in {n} of them behind all other tools (p = " in finding.message


def test_tools_in_the_order_of_their_calls() -> None:
    order = ["open_window", "find_book", "lend_book", "weigh_book", "bind_book", "dust_shelf"]
    (finding,) = placed(listed(n, order) for n in range(5))
    assert (finding.check, finding.field) == ("tools-in-order", "tools")
    assert finding.message == (
        "in 5 of 5 cases the tools that the reference calls are listed in the order of its calls "
        "(p at most 1.3e-04 by chance)"
    )


def test_few_cases_and_tools_in_any_order_prove_nothing() -> None:
    order = ["find_book", "lend_book", "bind_book", "weigh_book", "dust_shelf", "open_window"]
    assert placed(listed(n, order, **EXTRANEOUS) for n in range(4)) == []
    assert placed(listed(n, shuffled(n), **EXTRANEOUS) for n in range(60)) == []


@given(
    lengths=st.dictionaries(st.integers(2, 6), st.integers(1, 6), min_size=1, max_size=3),
    share=st.floats(0, 1),
)
def test_the_chance_of_an_order_is_never_less_than_it_is(
    lengths: dict[int, int], share: float
) -> None:
    n = sum(lengths.values())
    hits = round(share * n)
    exact = np.ones(1)  # of a sum of Bernoulli variables, by convolution
    for m, count in lengths.items():
        for _ in range(count):
            exact = np.convolve(exact, [1 - 1 / math.factorial(m), 1 / math.factorial(m)])
    bound = chance_of_order(hits, lengths)
    assert float(exact[hits:].sum()) * (1 - 1e-9) <= bound <= 1
    if hits == n:
        assert bound == pytest.approx(float(exact[-1]), rel=1e-6)


@pytest.mark.parametrize(("n", "k", "cases"), [(3, 1, 7), (4, 2, 5), (6, 1, 5), (5, 2, 5)])
def test_places_of_distractors_are_remarked_upon_where_chance_rarely_puts_them(
    n: int, k: int, cases: int
) -> None:
    """By counting all ways in which distractors can be placed in so many lists."""
    sums = Counter(sum(places) - k * (n + 1) / 2 for places in combinations(range(1, n + 1), k))
    total = Counter({0.0: 1})
    for _ in range(cases):
        step: Counter[float] = Counter()
        for (one, a), (other, b) in product(total.items(), sums.items()):
            step[one + other] += a * b
        total = step
    deviation = math.sqrt(cases * k * (n - k) * (n + 1) / 12)
    for excess in sorted(total):
        p = math.erfc(abs(excess) / deviation / math.sqrt(2))
        exact = sum(w for x, w in total.items() if abs(x) >= abs(excess)) / sum(total.values())
        assert p >= P_VALUE or exact < 2 * P_VALUE
