"""Tool banks of efficiency cases: costs, composites and traps."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import shorten
from ...protocols.checks.cost import cheapest_ways
from ..cases import EFFICIENCY
from ..composition import split_of
from ..findings import CaseCheck, CaseFinding, CheckedCase

MOST_REPLACED = 3


def costs(case: CheckedCase) -> Iterator[CaseFinding]:
    """Every tool has a cost, in whole numbers."""
    tools = case.item.tools.tools if case.item.tools else ()
    without = [tool.name for tool in tools if tool.cost is None]
    if without and len(without) < len(tools):
        message = f"{shorten(without[0])} has none, others have one"
        yield case.finding("cost-missing", "tools", message)
    if split_of(case.item) == EFFICIENCY:
        for tool in tools:
            if tool.cost is not None and tool.cost % 1:
                message = f"{shorten(tool.name)} costs {tool.cost:g}"
                yield case.finding("cost-not-whole", "tools", message)


def bank(case: CheckedCase) -> Iterator[CaseFinding]:
    """Composites and traps are what the case says they are."""
    item, construction = case.item, case.item.construction
    if (
        construction is None
        or item.tools is None
        or not (construction.composites or construction.traps)
    ):
        return
    chain = [call.name for call in item.reference.calls] if item.reference else []
    tools = item.tools.by_name
    field = "construction.composites"
    for composite in construction.composites:
        name, places = shorten(composite.name), sorted(composite.replaces)
        if composite.name not in tools or not places or places[-1] >= len(chain) or places[0] < 0:
            message = (
                f"{name} is no tool"
                if composite.name not in tools
                else (f"{name} replaces calls that the reference does not make")
            )
            yield case.finding("composite-unknown", field, message)
            continue
        n = len(places)
        if places != list(range(places[0], places[0] + n)) or not 2 <= n <= MOST_REPLACED:
            message = f"{name} replaces the calls {', '.join(str(at + 1) for at in places)}"
            yield case.finding("composite-not-consecutive", field, message)
        if n == len(chain):
            yield case.finding("composite-covers-all", field, f"{name} does all {n} calls")
        own = tools[composite.name].cost
        parts = [tools[chain[at]].cost for at in places if chain[at] in tools]
        whole = [cost for cost in parts if cost is not None]
        if own is not None and len(whole) == n and own >= sum(whole):
            message = f"{name} costs {own:g}, the calls that it replaces {sum(whole):g}"
            yield case.finding("composite-not-cheaper", field, message)
    for name in construction.traps:
        if name not in tools:
            message = f"{shorten(name)} is no tool"
            yield case.finding("composite-unknown", "construction.traps", message)
    ways = cheapest_ways(item)
    on_way = sorted(set(construction.traps) & (ways[1] if ways else frozenset(chain)))
    if on_way:
        message = f"a cheapest plan calls {shorten(on_way[0])}"
        yield case.finding("trap-on-cheapest-plan", "construction.traps", message)


EFFICIENCY_CHECKS: tuple[CaseCheck, ...] = (costs, bank)
