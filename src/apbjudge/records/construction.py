"""The construction of a case: ``build`` writes it and ``check`` compares the case with it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .base import Record

ContradictionKind = Literal["bounds", "missing_dimension", "compliance_lock", "dynamic_state"]
"""Reason why the constraints of a case contradict each other: two limits on a number, or a tool
that is out of service although it alone sees the deciding fact, gives results that count, or checks
the state before an action (arXiv:2606.04874, figure 15)."""


class Bound(Record):
    """A limit on a number that a query states.

    Attributes:
        subject: The limited quantity, in the query's words.
        kind: ``at least`` or ``at most``.
        value: The limit, inclusive.
        text: The sentence or clause of the query that states it.
    """

    subject: str
    kind: Literal["at least", "at most"]
    value: float
    text: str


class Composite(Record):
    """A tool that does what several consecutive calls of the reference do.

    Attributes:
        name: Name of the tool.
        replaces: Places of the calls in the reference's chain, from 0.
    """

    name: str
    replaces: tuple[int, ...]


class Construction(Record):
    """The origin and construction of a case; empty fields state nothing.

    Attributes:
        seed: Id of the record that it was made from.
        transform: Name of the change that made it, such as ``tool_removal``.
        source: Place of the seed, such as ``log.jsonl:12``.
        licence: Licence of the source.
        twin: Id of the solvable case that differs from this one only in its condition.
        removed_tools: Names of the tools that the twin has and this case lacks.
        removed_value: The value that the twin's query states and this query does not.
        bounds: Limits, two of which contradict each other.
        contradiction_kind: The kind of contradictory constraints; None for other cases.
        requirement: The sentences of the query that demand the result of a tool.
        offline_tool: The tool that these sentences demand and declare out of service.
        compliance: True if the query of a case without its tools demands the result of one; None
            for other cases.
        parameter_map: Parameter of the broken tool to that of its replacement.
        composites: Tools that replace several calls of the reference.
        traps: Tools that no cheapest plan calls.
        repairs: Repairs during construction.
        model: The model that wrote a part of it.
    """

    seed: str = ""
    transform: str = ""
    source: str = ""
    licence: str = ""
    twin: str | None = None
    removed_tools: tuple[str, ...] = ()
    removed_value: str | None = Field(default=None, min_length=1)
    bounds: tuple[Bound, ...] = ()
    contradiction_kind: ContradictionKind | None = None
    requirement: str = ""
    offline_tool: str | None = Field(default=None, min_length=1)
    compliance: bool | None = None
    parameter_map: dict[str, str] = {}
    composites: tuple[Composite, ...] = ()
    traps: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    model: str | None = None

    @property
    def claims(self) -> dict[str, str]:
        """The claims about the case, texts for people by name; empty claims are left out.

        Returns:
            Some of ``parameter_map``, ``removed_tools``, ``removed_value``, ``limits``,
            ``composites`` (each with the numbers of the calls that it stands for, from 1) and
            ``traps``.
        """
        composites = (
            f"{tool.name}: {', '.join(str(place + 1) for place in tool.replaces)}"
            for tool in self.composites
        )
        texts = {
            "parameter_map": "\n".join(f"{a}: {b}" for a, b in self.parameter_map.items()),
            "removed_tools": "\n".join(self.removed_tools),
            "removed_value": self.removed_value or "",
            "limits": "\n".join([*(of.text for of in self.bounds), self.requirement]).strip(),
            "composites": "\n".join(composites),
            "traps": "\n".join(self.traps),
        }
        return {name: text for name, text in texts.items() if text}
