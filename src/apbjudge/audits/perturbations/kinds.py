"""Kinds of perturbations (data/perturbations.toml), their inputs and required properties."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from random import Random
from typing import Any, NamedTuple

from ...records import Call, ErrorCode, Form, Item, Record, Tool, Toolset
from ...rubrics.rubric import Shape
from ..variants import Role, Severity, Truth, Variant
from .bases import Base, planned
from .parts import ReplyParts, seeded, tool_of
from .words import schema_of, table

CARRIED_ON = "carried-on"


class Change(NamedTuple):
    """The result of a perturbation: a reply (None for the old one) and fields of the row.

    ``what`` is one sentence that names the place and the values; if empty, the kind's is used.
    """

    reply: ReplyParts | str | None = None
    what: str = ""
    case: Mapping[str, Any] | None = None


class Kind(Record):
    """One way of changing a plan, its case or their presentation.

    Attributes:
        name: Unique among the kinds of its table.
        what: The change, in one line.
        texts: Texts for the reply; one is drawn.
        form: Form of the replies that it fits; None for both.
        shapes: Shapes of the rubrics that it fits.
        code: Error code of a fault; None for protocols without codes and for harmless kinds.
        also: Codes that may hold too, as consequences of the fault.
        severity: Severity of a fault; None for harmless kinds.
        is_proven: True if a rule proves the fault in every variant.
        category: Behaviour after a broken tool that the fault causes; None for other protocols.
    """

    name: str
    what: str
    texts: tuple[str, ...] = ()
    form: Form | None = None
    shapes: tuple[Shape, ...] = ("flags", "category", "pass")
    code: ErrorCode | None = None
    also: frozenset[ErrorCode] = frozenset()
    severity: Severity | None = None
    is_proven: bool = False
    category: int | None = None

    def fits(self, base: Base) -> bool:
        """True if the kind fits a base's rubric and form."""
        return base.rubric.shape in self.shapes and self.form in (None, base.item.form)

    @property
    def truth(self) -> Truth | None:
        """The truth about a plan with a fault of this kind; None for harmless kinds."""
        if self.severity is None:
            return None
        codes = None if self.code is None else frozenset({self.code})
        return Truth(is_correct=False, codes=codes, also=self.also, category=self.category)


class Argument(NamedTuple):
    """One argument of a plan's calls, with its schema."""

    at: int
    call: Call
    name: str
    value: Any
    schema: dict[str, Any]


@dataclass(frozen=True, eq=False)  # no slots: item and parts are read once
class Occasion:
    """The inputs of a change.

    Attributes:
        role: Purpose of the variant.
        base: The plan taken as correct.
        parent: The variant that is changed, such as the base's own.
        kind: Kind of change.
        seed: Seed, together with names, for the choice of places and values.
        others: Bases whose references may be used.
    """

    role: Role
    base: Base
    parent: Variant
    kind: Kind
    seed: int
    others: Sequence[Base] = ()

    @cached_property
    def rng(self) -> Random:
        """Draws places and values."""
        stem = self.parent.name if self.role == "shown" else self.base.name
        return seeded(self.seed, stem, self.kind.name)

    @cached_property
    def item(self) -> Item:
        """The parent as an item."""
        return self.base.read(self.parent)

    @cached_property
    def parts(self) -> ReplyParts | None:
        """The parent's reply in parts; None as in ``Base.parts_of``."""
        return self.base.parts_of(self.parent)

    @property
    def plan(self) -> ReplyParts:
        """The plan taken as correct."""
        return self.base.parts

    @property
    def query(self) -> str:
        """The query of the base's case."""
        return self.base.item.query

    @property
    def tools(self) -> Toolset | None:
        """The tools of the base's case."""
        return self.base.item.tools

    @property
    def checkable(self) -> Mapping[str, Tool]:
        """By name, the tools whose arguments rules can check."""
        return self.tools.checkable if self.tools else {}

    @property
    def arguments(self) -> Iterator[Argument]:
        """Every argument of the plan taken as correct."""
        for at, call in enumerate(self.plan.calls):
            tool = tool_of(self.tools, call.name)
            for name, value in (call.arguments or {}).items():
                yield Argument(at, call, name, value, schema_of(tool, name))

    def with_value(self, old: Argument, value: Any, what: str) -> Change:
        """A change of one argument; ``what`` states the new value."""
        reply = self.plan.with_argument(old.at, old.name, value)
        return Change(reply, f"{old.name} of {self.plan.place(old.at)} is {what}")


Maker = Callable[[Occasion], Iterable[Change]]
"""Yields every possible change; one of them is drawn."""
Makers = Mapping[str, Maker]
"""Makers by name of the kind."""


def by_name(*makers: Maker) -> Makers:
    """Makers by the names of their functions, such as ``drop-call``."""
    return {maker.__name__.strip("_").replace("_", "-"): maker for maker in makers}


@cache
def kinds_of(role: Role) -> tuple[Kind, ...]:
    """The kinds of variants of a role, in the order of their table."""
    return tuple(Kind.model_validate(entry) for entry in table("perturbations")[role])


def reads_as_meant(on: Occasion, change: Change, variant: Variant) -> bool:
    """True if a variant is read without problems, as its parts, and differs from the base."""
    base, reply = on.base, change.reply
    item = base.read(variant)
    if item.prediction.problems or item.prediction.kind == "text":
        return False
    if isinstance(reply, ReplyParts):
        calls = [
            [(c.name, c.arguments or {}) for c in side.calls] for side in (item.prediction, reply)
        ]
        if calls[0] != calls[1]:
            return False
    return item.response != on.plan.text or item.query != on.query


def proves_only(on: Occasion, variant: Variant) -> bool:
    """True if rules prove no other fault than the planted one, and that one if they should."""
    base, kind = on.base, on.kind
    if base.rubric.shape == "category":
        category = base.protocol.category_of(base.read(variant))
        return category == kind.category or (category is None and not kind.is_proven)
    if base.rubric.shape == "pass":
        return any(finding.rule == CARRIED_ON for finding in base.findings(variant))
    codes = {finding.code for finding in base.proven(variant)}
    return codes <= {kind.code, *kind.also} and (not kind.is_proven or kind.code in codes)


def leaves_as_is(on: Occasion, variant: Variant) -> bool:
    """True if a variant and its base have the same proven findings and category."""

    def facts(of: Variant) -> object:
        codes = {(finding.rule, finding.code) for finding in on.base.proven(of)}
        return codes, on.base.protocol.category_of(on.base.read(of))

    return facts(on.base.variant) == facts(variant)


def plans_the_same(on: Occasion, variant: Variant) -> bool:
    """True if a variant has the plan of its parent, but a different row."""
    if {**variant.row, "id": ""} == {**on.parent.row, "id": ""}:
        return False
    before = planned(on.base, on.parent)
    return before is not None and planned(on.base, variant) == before
