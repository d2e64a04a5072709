"""Tools with costs, among them cheaper ways and traps (arXiv:2606.04874, section B.5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from ....protocols.tool_words import name_words, properties
from ....records import Composite, Tool
from ..cases import EFFICIENCY, Context, Reject, Row, RowMaker, transform
from ..likeness import LIKE, does_work, in_style_of, likeness, may_serve
from ..pool import ToolPool
from ..references import purpose_of, solution_of
from ..seeds import Seed, draw

_LEAST_CALLS = 4
_LEAST_COMPOSITES, _MOST_COMPOSITES = 3, 6
_LEAST_TRAPS, _MOST_TRAPS = 2, 4
_LONGEST_NAME = 64
"""Characters that providers of models take in the name of a tool."""


@dataclass(slots=True)
class _Bank:
    """The tools of a case while it is made: each with a cost, each name once.

    Attributes:
        seed: Seed of the case.
        pool: Tools of other tasks.
        rng: Draws costs and tools.
        tools: Those that are in.
        taken: Their names, in lower case.
    """

    seed: Seed
    pool: ToolPool
    rng: Random
    tools: list[Tool] = field(default_factory=list[Tool])
    taken: set[str] = field(default_factory=set[str])

    def cost(self, name: str) -> int:
        """Cost of a tool that is in."""
        return next(int(tool.cost or 0) for tool in self.tools if tool.name == name)

    def is_free(self, name: str) -> bool:
        """True if a new tool may have this name."""
        return 0 < len(name) <= _LONGEST_NAME and name.casefold() not in self.taken

    def add(self, tool: Tool, cost: int) -> None:
        """Adds a tool at a cost."""
        self.tools.append(tool.model_copy(update={"cost": cost}))
        self.taken.update(name.casefold() for name in (tool.name, *tool.other_names))


@transform(EFFICIENCY)
def efficiency(seed: Seed, context: Context, row: RowMaker) -> Row | Reject:
    """The task with a cost on every tool, tools that do two or three calls at once, and traps.

    The cheapest way takes at least one of the former, since each costs less than the calls that it
    replaces, and none of the latter: they cost more than what they do or do nothing of use.
    """
    rng = draw(context.seed, seed.seed_id, EFFICIENCY)
    if reason := _unfit(seed):
        return Reject(reason)
    bank = _Bank(seed, context.pool, rng, taken={name.casefold() for name in seed.toolset.names})
    for tool in seed.toolset.tools:
        bank.add(tool, rng.randint(1, 5))
    composites = _add_composites(bank)
    if len(composites) < _LEAST_COMPOSITES:
        return Reject("too few runs of calls can be merged")
    traps = _add_traps(bank)
    if len(traps) < _LEAST_TRAPS:
        return Reject("too few traps can be made")
    claims = {"composites": composites, "traps": traps}
    return row(tools=bank.tools, claims=claims, **solution_of(seed))


def _unfit(seed: Seed) -> str:
    """The reason why no case can be made; empty if a case can be made."""
    tools = seed.toolset
    if len(seed.calls) < _LEAST_CALLS:
        return "a solution of fewer than four calls"
    if len(tools.by_name) < len(tools.tools):
        return "a tool is defined twice"
    if not seed.used <= tools.checkable.keys():
        return "a tool of the solution has no JSON Schema"
    return ""


# Composites ---------------------------------------------------------------------------------------


def _add_composites(bank: _Bank) -> list[Composite]:
    calls, rng = bank.seed.calls, bank.rng
    # There are more than three calls, so that no span is the whole chain.
    spans = [(at, n) for n in (2, 3) for at in range(len(calls) - n + 1)]
    rng.shuffle(spans)
    wanted = rng.randint(_LEAST_COMPOSITES, _MOST_COMPOSITES)
    composites: list[Composite] = []
    for at, n in spans:
        tool = _merged(bank, at, n)
        if tool is None:
            continue
        total = sum(bank.cost(call.name) for call in calls[at : at + n])
        bank.add(tool, rng.randint(max(1, total - 3), total - 1))
        composites.append(Composite(name=tool.name, replaces=tuple(range(at, at + n))))
        if len(composites) == wanted:
            break
    return composites


def _merged(bank: _Bank, start: int, n: int) -> Tool | None:
    """One tool for consecutive calls; None if it can't keep their parameters apart."""
    calls = bank.seed.calls[start : start + n]
    tools = [bank.seed.toolset.checkable[call.name] for call in calls]
    words = [word for tool in tools for word in ("and", *name_words(tool.name))][1:]
    name = in_style_of(tools[0].name, words)
    if len({tool.name for tool in tools}) < n or not bank.is_free(name):
        return None
    if not all(does_work(tool.name, bank.seed.ends) and _is_plain(tool) for tool in tools):
        return None
    asked = [
        (tool, parameter)
        for call, tool in zip(calls, tools, strict=True)
        for parameter in properties(tool)
        if call.needs.get(parameter, -1) < start
    ]
    described: dict[str, Any] = {}
    required: list[str] = []
    for tool, parameter in asked:
        clashes = sum(parameter == other for _, other in asked) > 1
        own = f"{tool.name}_{parameter}" if clashes else parameter
        if own in described:
            return None
        described[own] = tool.parameters["properties"][parameter]
        if parameter in tool.required:
            required.append(own)
    schema: dict[str, Any] = {"type": "object", "properties": described, "required": required}
    if all(tool.parameters.get("additionalProperties") is False for tool in tools):
        schema["additionalProperties"] = False
    purposes = "; then: ".join(purpose_of(tool.name, tool) for tool in tools)
    passed = any(start <= at for call in calls for at in call.needs.values())
    handed = " Results that a later part needs are passed on." if passed else ""
    description = f"In one call: {purposes}.{handed}"
    return Tool(name=name, description=description, parameters=schema, parameter_kind="json_schema")


def _is_plain(tool: Tool) -> bool:
    """True if parameters are described by themselves, so that they can be moved."""
    loose = {"$defs", "definitions", "allOf", "anyOf", "oneOf", "if", "dependentRequired"}
    return loose.isdisjoint(tool.parameters) and "$ref" not in str(tool.parameters)


# Traps --------------------------------------------------------------------------------------------


def _add_traps(bank: _Bank) -> list[str]:
    """Adds tools that no cheapest way uses, and returns their names."""
    kinds = [_overpriced, _redundant, _off_target]
    bank.rng.shuffle(kinds)
    wanted = bank.rng.randint(_LEAST_TRAPS, _MOST_TRAPS)
    traps: list[str] = []
    for make in [*kinds, *kinds]:
        if len(traps) == wanted:
            break
        if trap := make(bank):
            tool, cost = trap
            bank.add(tool, cost)
            traps.append(tool.name)
    return traps


def _drawn_tools(bank: _Bank) -> list[Tool]:
    """The tools that do the solution's work, in random order."""
    names = sorted(name for name in bank.seed.used if does_work(name, bank.seed.ends))
    bank.rng.shuffle(names)
    return [bank.seed.toolset.checkable[name] for name in names]


def _overpriced(bank: _Bank) -> tuple[Tool, int] | None:
    """A copy of a needed tool, at a higher cost and with a report that was not requested."""
    for tool in _drawn_tools(bank):
        name = in_style_of(tool.name, [*name_words(tool.name), "with", "report"])
        if bank.is_free(name):
            description = f"{purpose_of(tool.name, tool)}, with a report on every step taken."
            fields = {"name": name, "description": description, "other_names": ()}
            return tool.model_copy(update=fields), bank.cost(tool.name) + bank.rng.randint(1, 3)
    return None


def _redundant(bank: _Bank) -> tuple[Tool, int] | None:
    """A tool that checks the result of a call once more."""
    stated = {call.name for call in bank.seed.calls if call.result is not None}
    for tool in sorted(_drawn_tools(bank), key=lambda tool: tool.name not in stated):
        name = in_style_of(tool.name, ["recheck", *name_words(tool.name)])
        if bank.is_free(name):
            result = {"type": "string", "description": f"What {tool.name} returned."}
            schema = {"type": "object", "properties": {"result": result}, "required": ["result"]}
            description = f"Checks once more whether what {tool.name} returned is right."
            recheck = Tool(
                name=name, description=description, parameters=schema, parameter_kind="json_schema"
            )
            return recheck, bank.rng.randint(1, 5)
    return None


def _off_target(bank: _Bank) -> tuple[Tool, int] | None:
    """A tool of another task that is useless for this one."""
    needed = [bank.seed.toolset.by_name[name] for name in sorted(bank.seed.used)]
    drawn = bank.pool.draw(bank.rng, needed, category=bank.seed.category)
    for tool in drawn:
        if (
            tool.parameter_kind == "json_schema"
            and bank.is_free(tool.name)
            and not any(
                may_serve(tool, other) or likeness(tool, other) >= LIKE / 2 for other in needed
            )
        ):
            return tool, bank.rng.randint(1, 5)
    return None
