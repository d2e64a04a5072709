"""Tool banks of efficiency cases: costs, composites and traps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from ....errors import shorten
from ....protocols.checks.cost import cheapest_ways
from ....records import Composite, Tool
from ..cases import EFFICIENCY
from ..composition import split_of
from ..findings import CaseCheck, CaseFinding, CheckedCase
from .conditions import may_be_offered

MOST_REPLACED = 3


def costs(case: CheckedCase) -> Iterator[CaseFinding]:
    """Every tool has a cost, in whole numbers; in rows of other splits costs say nothing."""
    item, split = case.item, split_of(case.item)
    tools = item.tools.tools if item.tools else ()
    without = [tool.name for tool in tools if tool.cost is None]
    is_meant = item.split is None or bool(_declared(case))
    if is_meant and without and len(without) < len(tools):
        message = f"{shorten(without[0])} has none, others have one"
        yield case.finding("cost-missing", "tools", message)
    for tool in tools if split == EFFICIENCY else ():
        if tool.cost is not None and tool.cost % 1:
            message = f"{shorten(tool.name)} costs {tool.cost:g}"
            yield case.finding("cost-not-whole", "tools", message)


def _declared(case: CheckedCase) -> list[str]:
    """Names of the composites and traps that the case declares."""
    construction = case.item.construction
    return [*(c.name for c in construction.composites), *construction.traps] if construction else []


def bank(case: CheckedCase) -> Iterator[CaseFinding]:
    """Composites and traps are what the case says they are."""
    item, construction = case.item, case.item.construction
    if construction is None or item.tools is None or not _declared(case):
        return
    for field, names in (
        ("composites", [composite.name for composite in construction.composites]),
        ("traps", construction.traps),
    ):
        for name in names:
            if not may_be_offered(item, name):
                message = f"{shorten(name)} is no tool of the case"
                yield case.finding("composite-unknown", f"construction.{field}", message)
    chain = [call.name for call in item.reference.calls] if item.reference else []
    # Places count the calls of a plan without composites.
    if item.form == "plan" and set(chain).isdisjoint(c.name for c in construction.composites):
        for composite in construction.composites if chain else ():
            yield from _places(case, composite, chain)
    ways = cheapest_ways(item)
    on_way = sorted(set(construction.traps) & (ways[1] if ways else frozenset(chain)))
    if on_way:
        way = "a cheapest way through the reference" if ways else "the reference"
        message = f"{way} calls {shorten(on_way[0])}"
        yield case.finding("trap-on-cheapest-plan", "construction.traps", message)


def _places(case: CheckedCase, composite: Composite, chain: Sequence[str]) -> Iterator[CaseFinding]:
    """Yields the faults of the calls that a composite replaces, and of its cost."""
    name, places = shorten(composite.name), sorted(set(composite.replaces))
    if not places:
        return
    field, n = "construction.composites", len(places)
    word, numbers = "calls" if n > 1 else "call", ", ".join(str(at + 1) for at in places)
    if places[-1] >= len(chain) or places[0] < 0:
        message = f"{name} replaces {word} {numbers} of the reference, which has {len(chain)}"
        yield case.finding("composite-unknown", field, message)
        return
    if places != list(range(places[0], places[0] + n)) or not 2 <= n <= MOST_REPLACED:
        message = f"{name} replaces {word} {numbers} of the reference"
        yield case.finding("composite-not-consecutive", field, message)
    if n == len(chain):
        message = f"{name} does all that the reference does in {n} {word}"
        yield case.finding("composite-covers-all", field, message)
    tools: Mapping[str, Tool] = case.item.tools.by_name if case.item.tools else {}
    own, *parts = (
        tools[each].cost if each in tools else None
        for each in (composite.name, *(chain[at] for at in places))
    )
    stated = [cost for cost in parts if cost is not None]
    total = math.fsum(stated)
    if own is None or len(stated) < n or (own < total and not math.isclose(own, total)):
        return
    message = f"{name} costs {own:g}, the {word} that it replaces {total:g}"
    yield case.finding("composite-not-cheaper", field, message)


EFFICIENCY_CHECKS: tuple[CaseCheck, ...] = (costs, bank)
