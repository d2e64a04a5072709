"""The construction of a case: ``build`` writes it and ``check`` compares the case with it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .base import Record

ContradictionKind = Literal["bounds", "missing_dimension", "compliance_lock", "dynamic_state"]
"""Why the constraints of a case contradict each other: two limits on a number, or a tool that is
out of service and alone sees what decides, alone gives results that count, or alone checks the
state before an action (arXiv:2606.04874, figure 15)."""


class Bound(Record):
    """A limit on a number that a query states.

    Attributes:
        subject: What is limited, in the query's words.
        kind: ``at least`` or ``at most``.
        value: The limit, itself allowed.
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
    """The origin of a case and the way it was made; empty fields say nothing.

    Attributes:
        seed: Id of what it was made from.
        transform: Name of what made it, such as ``tool_removal``.
        source: Where the seed was read, such as ``log.jsonl:12``.
        licence: Licence of the source.
        twin: Id of the solvable case that this one differs from in its condition alone.
        removed_tools: Names of the tools that the twin has and this case lacks.
        removed_value: The value that the twin's query states and this one's does not.
        bounds: Limits of which two contradict each other.
        contradiction_kind: The kind of contradictory constraints; None for other cases.
        requirement: The sentences of the query that demand the result of a tool.
        offline_tool: The tool that these sentences demand and declare out of service.
        compliance: True if the query of a case without its tools demands the result of one; None
            for other cases.
        parameter_map: Parameter of the broken tool to that of its replacement.
        composites: Tools that replace several calls of the reference.
        traps: Tools that no cheapest plan calls.
        repairs: What was mended on the way.
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
        """Its claims about the case, a text for people by name; empty claims are left out.

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
