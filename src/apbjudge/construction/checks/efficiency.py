"""Tool banks of efficiency cases: costs, composites and traps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import fsum

from ...errors import shorten
from ...protocols.checks.cost import cheapest_ways
from ...records import Composite, Item, Tool
from ..cases import EFFICIENCY
from ..composition import split_of
from ..findings import CaseCheck, CaseFinding, CheckedCase


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
    if construction is None or item.tools is None:
        return
    tools = item.tools.by_name
    for composite in construction.composites:
        yield from _composite(case, composite, tools)
    for name in construction.traps:
        if name not in tools:
            message = f"{shorten(name)} is no tool"
            yield case.finding("composite-unknown", "construction.traps", message)
    ways = cheapest_ways(item)
    on_way = sorted(set(construction.traps) & ways[1]) if ways else []
    if on_way:
        message = f"a cheapest plan calls {shorten(on_way[0])}"
        yield case.finding("trap-on-cheapest-plan", "construction.traps", message)


def _composite(
    case: CheckedCase, composite: Composite, tools: Mapping[str, Tool]
) -> Iterator[CaseFinding]:
    name, places = shorten(composite.name), sorted(composite.replaces)
    n, field = len(places), "construction.composites"
    if composite.name not in tools:
        yield case.finding("composite-unknown", field, f"{name} is no tool")
        return
    if n < 2 or places != list(range(places[0], places[0] + n)):
        message = f"{name} replaces the calls {', '.join(str(at + 1) for at in places) or 'none'}"
        yield case.finding("composite-not-consecutive", field, message)
        return
    chain = _chain(case.item)
    if not chain:
        return
    if places[-1] >= len(chain) or places[0] < 0:
        message = f"{name} replaces calls that the reference does not make"
        yield case.finding("composite-unknown", field, message)
        return
    if n == len(chain):
        yield case.finding("composite-covers-all", field, f"{name} does all {n} calls")
    own = tools[composite.name].cost
    costs = [tools[chain[at]].cost for at in places if chain[at] in tools]
    known = [cost for cost in costs if cost is not None]
    if own is not None and len(known) == n and own >= (whole := fsum(known)):
        message = f"{name} costs {own:g}, the calls that it replaces {whole:g}"
        yield case.finding("composite-not-cheaper", field, message)


def _chain(item: Item) -> list[str]:
    """The reference's calls by name; nothing where composites are among them, which move places."""
    chain = [call.name for call in item.reference.calls] if item.reference else []
    composites = item.construction.composites if item.construction else ()
    return chain if all(composite.name not in chain for composite in composites) else []


EFFICIENCY_CHECKS: tuple[CaseCheck, ...] = (costs, bank)
