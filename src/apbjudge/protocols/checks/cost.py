"""Costs of a plan and of the cheapest way of the reference (efficiency cases)."""

from __future__ import annotations

from ...records import Item


def plan_cost(item: Item) -> float | None:
    """Sum of the costs of a plan's calls (arXiv:2606.04874, section on efficiency).

    Returns:
        The sum in the case's own cost unit, 0.0 for a plan without calls; None if the tools state
        no costs, the reply is not a plan, or it calls a tool without a stated cost.
    """
    if item.tools is None or not item.tools.has_costs or item.prediction.kind != "plan":
        return None
    return _sum_of(item, [call.name for call in item.prediction.calls])


def optimal_cost(item: Item) -> float | None:
    """The cheapest way through the reference, in which composites may replace consecutive calls.

    Composites are those that the case declares (``Construction``). Computed by dynamic programming
    over the places of the chain.

    Returns:
        The cost in the case's unit; None if the case does not state the construction of its tool
        bank, has no costs or no reference chain, or if the chain calls a tool without a cost.
    """
    ways = cheapest_ways(item)
    return None if ways is None else ways[0]


def excess_cost(item: Item) -> float | None:
    """Cost of a plan above the cheapest way; None if either is unknown."""
    cost, least = plan_cost(item), optimal_cost(item)
    return None if cost is None or least is None else cost - least


def cheapest_ways(item: Item) -> tuple[float, frozenset[str]] | None:
    """The least cost of the reference's chain, and every tool that some cheapest way calls."""
    if item.construction is None or not item.construction.composites or item.form != "plan":
        return None
    if item.tools is None or not item.tools.has_costs or item.reference is None:
        return None
    chain = [call.name for call in item.reference.calls]
    spans = [(n, n + 1, name) for n, name in enumerate(chain)]
    for composite in item.construction.composites:
        places = sorted(composite.replaces)
        if places and places == list(range(places[0], places[-1] + 1)) and places[-1] < len(chain):
            spans.append((places[0], places[-1] + 1, composite.name))
    costs: dict[str, float] = {}
    for _, _, name in spans:
        cost = _sum_of(item, [name])
        if cost is None:
            return None
        costs[name] = cost
    if not chain:
        return None
    least = [0.0] + [float("inf")] * len(chain)
    for start, end, name in sorted(spans):
        least[end] = min(least[end], least[start] + costs[name])
    rest = [float("inf")] * len(chain) + [0.0]  # from each place to the end
    for start, end, name in sorted(spans, reverse=True):
        rest[start] = min(rest[start], costs[name] + rest[end])
    used = {n for s, e, n in spans if abs(least[s] + costs[n] + rest[e] - least[-1]) < _EQUAL}
    return least[-1], frozenset(used)


_EQUAL = 1e-9


def _sum_of(item: Item, names: list[str]) -> float | None:
    total = 0.0
    for name in names:
        tool = item.tools.by_name.get(name) if item.tools else None
        if tool is None or tool.cost is None:
            return None
        total += tool.cost
    return total
