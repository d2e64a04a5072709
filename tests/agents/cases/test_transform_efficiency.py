"""Costs, composites and traps: the cheapest way takes a composite and no trap."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.agents.cases.cases import Reject, Row
from apbjudge.agents.cases.references import chain_of
from apbjudge.agents.cases.seeds import Seed
from apbjudge.agents.cases.transforms.efficiency import efficiency
from apbjudge.records import Construction, Tool
from apbjudge.records import Row as CaseRow

from .worlds import CROSSING, FERRY, Call, context_of, seed_of, tool

TOWN = seed_of(
    name="bakery",
    tools=(
        tool("list_breads", "Lists the breads of a bakery.", bakery="string"),
        tool("slice_loaf", "Slices a loaf.", loaf="string"),
    ),
)


def made(seed: Seed, *others: Seed, number: int = 7) -> Row | Reject:
    context = context_of(seed, *others, seed=number)
    (row,) = efficiency(seed, context)
    (again,) = efficiency(seed, context)
    if not isinstance(row, Reject):
        assert orjson.dumps(row) == orjson.dumps(again)
    return row


def parts_of(row: Row | Reject) -> tuple[Construction, dict[str, Tool], list[str]]:
    """How a row was built, its tools by name and the calls of its reference."""
    assert not isinstance(row, Reject), row.reason
    item = CaseRow(row, 1, parsed=True).to_case()
    assert (item.split, item.form) == (None, "plan")
    assert item.construction is not None
    assert item.tools is not None
    assert item.tools.has_costs
    assert len(item.tools.by_name) == len(item.tools.tools)
    assert item.reference is not None
    calls = [call.name for call in item.reference.calls]
    return item.construction, dict(item.tools.by_name), calls


def costs(tools: dict[str, Tool]) -> dict[str, int]:
    assert all(tool.cost is not None and tool.cost == int(tool.cost) for tool in tools.values())
    return {name: int(tool.cost or 0) for name, tool in tools.items()}


def ways(
    n: int, covers: dict[str, list[tuple[int, ...]]], done: int = 0
) -> Iterator[tuple[str, ...]]:
    """Every way to do n calls in order, each by the tools that do one or several of them."""
    if done == n:
        yield ()
    for name, spans in covers.items():
        for span in spans:
            if span[0] == done:
                yield from ((name, *rest) for rest in ways(n, covers, done + len(span)))


CHAINS = st.lists(st.sampled_from(range(6)), min_size=4, max_size=7)
NAMES = [each["name"] for each in FERRY]


@given(CHAINS, st.booleans(), st.booleans(), st.integers(0, 2**32))
def test_the_cheapest_way_takes_a_composite_and_no_trap(
    chain: list[int], linked: bool, has_pool: bool, number: int
) -> None:
    arguments = {"origin": "Vik", "thing": "hat"}
    calls: list[Call] = [(NAMES[i], arguments, {"ok": at}) for at, i in enumerate(chain)]
    needs = {at: {"origin": at - 1} for at in range(1, len(chain))} if linked else {}
    seed = seed_of(*calls, needs=needs)
    row = made(seed, *([TOWN] if has_pool else []), number=number)
    if isinstance(row, Reject):
        assert row.reason == "too few runs of calls can be merged"
        runs = {tuple(chain[at : at + n]) for n in (2, 3) for at in range(len(chain) - n + 1)}
        assert len([run for run in runs if len({*run}) == len(run)]) < 3
        return
    construction, tools, reference = parts_of(row)
    cost = costs(tools)
    composites, traps = construction.composites, construction.traps
    new = {composite.name for composite in composites} | {*traps}
    assert reference == [NAMES[i] for i in chain]
    assert orjson.loads(row["tool_chain_json"]) == chain_of(seed)
    assert tools.keys() - new == {each["name"] for each in FERRY}
    assert 3 <= len(composites) <= 6
    assert 2 <= len(traps) <= 4
    assert len(new) == len(composites) + len(traps)
    assert all(1 <= cost[name] <= 5 for name in tools.keys() - new)
    assert all(value >= 1 for value in cost.values())
    for composite in composites:
        span = composite.replaces
        assert span == tuple(range(span[0], span[-1] + 1))
        assert 2 <= len(span) <= 3
        assert len(span) < len(reference)
        assert cost[composite.name] <= sum(cost[reference[at]] for at in span) - 1
        assert composite.name.split("_and_") == [reference[at] for at in span]
    assert len({composite.replaces for composite in composites}) == len(composites)
    # Traps by what their descriptions say that they do: one call, or nothing of the task.
    covers: dict[str, list[tuple[int, ...]]] = {name: [] for name in tools}
    for at, name in enumerate(reference):
        covers[name].append((at,))
    for composite in composites:
        covers[composite.name].append(composite.replaces)
    for trap in traps:
        for name in set(reference):
            if tools[name].description.rstrip(".").lower() in tools[trap].description.lower():
                assert cost[trap] > cost[name]
                covers[trap] += [(at,) for at, other in enumerate(reference) if other == name]
    priced = sorted((sum(map(cost.__getitem__, way)), way) for way in ways(len(reference), covers))
    cheapest = [way for total, way in priced if total == priced[0][0]]
    for way in cheapest:
        assert not {*way} & {*traps}
        assert {*way} & {composite.name for composite in composites}


def test_names_follow_the_style_of_the_tools() -> None:
    camel = [
        {**each, "name": "".join(map(str.capitalize, each["name"].split("_")))} for each in FERRY
    ]
    calls = [(name.title().replace("_", ""), *rest) for name, *rest in CROSSING]
    construction, tools, _ = parts_of(made(seed_of(*calls, tools=tuple(camel))))
    assert all("_" not in name for name in (*tools, *construction.traps))
    assert all("And" in composite.name for composite in construction.composites)


def test_tools_that_note_a_thought_are_neither_merged_nor_copied() -> None:
    tools = (*FERRY, tool("think", "Notes a thought.", thought="string"))
    more = seed_of(*CROSSING, ("think", {"thought": "hm"}, ""), tools=tools, needs={})
    construction, offered, _ = parts_of(made(more))
    new = {*construction.traps, *(each.name for each in construction.composites)}
    assert not any("think" in name for name in new)
    assert offered["think"].cost is not None


@pytest.mark.parametrize(
    ("reason", "seed"),
    [
        ("a solution of fewer than four calls", seed_of(*CROSSING[:3])),
        ("a tool is defined twice", seed_of(tools=(*FERRY, FERRY[0]))),
        (
            "a tool of the solution has no JSON Schema",
            seed_of(tools=(*FERRY[1:], {"name": "find_sailings", "description": "Finds."})),
        ),
        ("too few runs of calls can be merged", seed_of(*CROSSING[:1] * 5)),
    ],
)
def test_what_can_not_be_merged_makes_no_case(reason: str, seed: Seed) -> None:
    reject = made(seed)
    assert isinstance(reject, Reject)
    assert (reject.transform, reject.reason) == ("efficiency", reason)
