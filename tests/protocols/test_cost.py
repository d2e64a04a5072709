"""The cheapest way through a reference, against every way there is."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.protocols import excess_cost, optimal_cost, plan_cost
from tests.support.rows import plan, plan_row, read


def row(
    costs: list[int], composites: list[tuple[list[int], int]], called: tuple[str, ...] = ()
) -> dict[str, Any]:
    """An efficiency case of calls t0, t1, … with composites c0, c1, … and a plan."""
    calls = [f"t{n}" for n in range(len(costs))]
    built = [{"name": f"c{n}", "replaces": places} for n, (places, _) in enumerate(composites)]
    tools = [{"name": name, "cost": cost} for name, cost in zip(calls, costs, strict=True)]
    tools += [{"name": f"c{n}", "cost": cost} for n, (_, cost) in enumerate(composites)]
    return plan_row(
        plan(*((name, {}) for name in called or calls)),
        tools=tools,
        tool_chain=plan(*((name, {}) for name in calls))["tool_chain"],
        construction={"composites": built},
    )


def by_brute_force(costs: list[int], composites: list[tuple[list[int], int]]) -> float:
    """The least sum over all sets of composites that don't overlap."""
    best = float(sum(costs))
    for size in range(1, len(composites) + 1):
        for chosen in combinations(composites, size):
            places = [place for span, _ in chosen for place in span]
            if len(places) == len({*places}):
                rest = sum(cost for n, cost in enumerate(costs) if n not in places)
                best = min(best, rest + sum(cost for _, cost in chosen))
    return best


SPANS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(2, 3), st.integers(0, 12)), min_size=1, max_size=5
)


@given(st.lists(st.integers(1, 5), min_size=3, max_size=8), SPANS)
def test_the_cheapest_way_is_that_of_all_ways(
    costs: list[int], spans: list[tuple[int, int, int]]
) -> None:
    composites = [
        (list(range(start, start + size)), cost)
        for start, size, cost in spans
        if start + size <= len(costs)
    ]
    found = optimal_cost(read(row(costs, composites)))
    if composites:
        assert found == pytest.approx(by_brute_force(costs, composites))
    else:
        assert found is None


def test_the_cost_of_a_plan_is_the_sum_over_its_calls() -> None:
    tools = [{"name": "a", "cost": 2}, {"name": "b", "cost": 0.25}]
    inner = [{"type": "function", "cost": 4, "function": {"name": "a"}}]
    for listed, names, cost in (
        (tools, "aab", 4.25),
        (tools, "", 0.0),
        (tools, "ax", None),
        ([*tools, {"name": "c"}], "a", None),
        (None, "a", None),
        (inner, "a", 4.0),
    ):
        assert plan_cost(read(plan_row(plan(*((n, {}) for n in names)), tools=listed))) == cost


def test_a_plan_costs_more_or_less_than_the_cheapest_way() -> None:
    bank = ([3, 3, 3], [([1, 2], 4)])
    cases = {("t0", "t1", "t2"): 2, ("t0", "c0"): 0, ("t0",): -4}
    for names, excess in cases.items():
        case = read(row(*bank, names))
        assert optimal_cost(case) == 7
        assert excess_cost(case) == excess
        assert plan_cost(case) == 7 + excess
    assert excess_cost(read(row(*bank, ("ghost",)))) is None


def test_without_a_bank_that_was_built_nothing_is_known() -> None:
    plain = row([1, 2], [([0, 1], 2)])
    for change in (
        {"construction": None},
        {"tool_chain": None},
        {"tools": [{"name": "t0", "cost": 1}, {"name": "t1"}]},
    ):
        assert optimal_cost(read(plain | change)) is None
