"""The solution of a seed as the reference of a whole plan, in words that follow only from it."""

from __future__ import annotations

from typing import Any

import orjson

from ...protocols.tool_words import name_words
from ...records import Tool
from .seeds import Seed, SeedCall


def solution_of(seed: Seed) -> dict[str, Any]:
    """The reference of a whole plan, as arguments of ``case_row``."""
    return {"plan": plan_of(seed), "tool_chain": chain_of(seed)}


def chain_of(seed: Seed) -> list[dict[str, Any]]:
    """The solution's calls as a chain, with the purpose of each call and its parameters."""
    taken: dict[int, list[object]] = {}
    return [
        {
            "name": call.name,
            "parameter_description": {
                parameter: _description(call, parameter, value, taken)
                for parameter, value in call.arguments.items()
            },
            "reason": purpose_of(call.name, seed.tool(call.name)),
        }
        for call in seed.calls
    ]


def plan_of(seed: Seed) -> str:
    """The seed's own prose, or a numbered line for each call."""
    if seed.plan:
        return seed.plan
    lines = (
        f"{number}. {purpose_of(call.name, seed.tool(call.name))} ({call.name})."
        for number, call in enumerate(seed.calls, start=1)
    )
    return "\n".join(lines)


def purpose_of(name: str, tool: Tool | None) -> str:
    """The purpose of a tool: the first sentence of its description, else the words of its name."""
    described = " ".join(tool.description.split()) if tool else ""
    sentence = described.partition(". ")[0].rstrip(". ")
    return sentence or " ".join(name_words(name)).capitalize()


def _description(
    call: SeedCall, parameter: str, value: object, taken: dict[int, list[object]]
) -> str:
    """Describes a parameter; several values of one result are numbered, or calls would look equal.

    Args:
        call: The call.
        parameter: One of its parameters.
        value: Its value.
        taken: The values taken from the result of each call so far.
    """
    if (at := call.needs.get(parameter)) is None:
        return value if isinstance(value, str) else orjson.dumps(value).decode()
    values = taken.setdefault(at, [])
    if value not in values:
        values.append(value)
    number = values.index(value) + 1
    return f"{f'value {number} ' if number > 1 else ''}from the result of step {at + 1}"
