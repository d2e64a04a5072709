"""The table of perturbations, data/perturbations.toml, and how variants are made by it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from random import Random
from typing import Any, Literal, NamedTuple

from ...records import ErrorCode, Form, Item, Record
from ...rubrics.rubric import Shape
from ..variants import Role, Severity, Truth, Variant
from .bases import Base
from .parts import ReplyParts, one_of, seeded
from .words import table

CARRIED_ON = "carried-on"


class Change(NamedTuple):
    """The result of a perturbation: a reply (None for the old one) and fields of the row.

    ``what`` is one sentence that names the place and the values; empty for that of the kind.
    """

    reply: ReplyParts | str | None = None
    what: str = ""
    case: Mapping[str, Any] | None = None


class Kind(Record):
    """One way of changing a plan, its case or how they are shown.

    Attributes:
        name: Unique among the kinds of its table.
        what: What is done, in one line.
        texts: Texts for the reply; one is drawn.
        form: Form of the replies that it fits, None for both.
        shapes: Shapes of the rubrics that it fits.
        code: The code of a fault; None where the protocol has no codes, and of harmless kinds.
        also: Codes that may hold too, as consequences of the fault.
        severity: How much a fault spoils.
        is_proven: Whether code proves the fault in every variant that is made.
        category: Behaviour after a broken tool that a fault makes, None elsewhere.
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
        """True if it fits a base's protocol and form."""
        return base.rubric.shape in self.shapes and self.form in (None, base.item.form)

    @property
    def truth(self) -> Truth | None:
        """The truth about a plan with a fault of this kind; None for harmless kinds."""
        if self.severity is None:
            return None
        codes = None if self.code is None else frozenset({self.code})
        return Truth(is_correct=False, codes=codes, also=self.also, category=self.category)


@dataclass(frozen=True, eq=False)  # no slots: item and parts are read once
class Occasion:
    """The inputs of a change.

    Attributes:
        base: The plan taken as correct.
        parent: The variant that is changed, such as the base's own.
        kind: What is done.
        rng: Draws places and values.
    """

    base: Base
    parent: Variant
    kind: Kind
    rng: Random

    @cached_property
    def item(self) -> Item:
        """The parent as an item."""
        return self.base.read(self.parent)

    @cached_property
    def parts(self) -> ReplyParts | None:
        """The parent's reply; None where it is no JSON."""
        return self.base.parts_of(self.parent)


Maker = Callable[[Occasion], Iterable[Change]]
"""Yields every change that there is occasion for; one is drawn."""
Makers = Mapping[str, Maker]
"""By the name of the kind."""


def by_name(*makers: Maker) -> Makers:
    """Makers by the names of their functions, such as ``drop-call``."""
    return {maker.__name__.strip("_").replace("_", "-"): maker for maker in makers}


@cache
def kinds_of(name: Literal["faults", "harmless", "formats"]) -> tuple[Kind, ...]:
    """The kinds of a table, in its order."""
    return tuple(Kind.model_validate(entry) for entry in table("perturbations")[name])


_TABLES: Mapping[Role, Literal["faults", "harmless", "formats"]] = {
    "fault": "faults",
    "harmless": "harmless",
    "shown": "formats",
}


def variants(
    parent: Variant,
    base: Base,
    role: Role,
    makers: Makers,
    *,
    seed: int,
    kinds: Collection[str] | None,
) -> Iterator[tuple[Kind, Change, Variant]]:
    """One variant of each kind that fits a base, as long as there is occasion for it."""
    stem = parent.name if role == "shown" else base.name
    for kind in kinds_of(_TABLES[role]):
        if not kind.fits(base) or (kinds is not None and kind.name not in kinds):
            continue
        rng = seeded(seed, stem, kind.name)
        change = one_of(rng, list(makers[kind.name](Occasion(base, parent, kind, rng))))
        if change is not None:
            variant = base.derived(
                role,
                kind.name,
                what=change.what or kind.what,
                truth=kind.truth,
                reply=change.reply,
                case=change.case,
                parent=parent,
                severity=kind.severity,
            )
            yield kind, change, variant


def reads_as_meant(base: Base, variant: Variant, reply: ReplyParts | str | None) -> bool:
    """True if a variant is read without problems, as its parts, and differs from the base."""
    item = base.read(variant)
    if item.prediction.problems or item.prediction.kind == "text":
        return False
    if isinstance(reply, ReplyParts):
        calls = [
            [(c.name, c.arguments or {}) for c in side.calls] for side in (item.prediction, reply)
        ]
        if calls[0] != calls[1]:
            return False
    return item.response != base.parts.text or item.query != base.item.query


def proves_only(base: Base, variant: Variant, kind: Kind) -> bool:
    """True if code proves the planted fault where it should, and no other one."""
    if base.rubric.shape == "category":
        category = base.protocol.category_of(base.read(variant))
        return category == kind.category or (category is None and not kind.is_proven)
    if base.rubric.shape == "pass":
        return any(finding.rule == CARRIED_ON for finding in base.findings(variant))
    codes = {finding.code for finding in base.proven(variant)}
    return codes <= {kind.code, *kind.also} and (not kind.is_proven or kind.code in codes)


def leaves_as_is(base: Base, variant: Variant) -> bool:
    """True if code has the same findings and category for a variant and its base."""

    def facts(of: Variant) -> object:
        codes = {(finding.rule, finding.code) for finding in base.proven(of)}
        return codes, base.protocol.category_of(base.read(of))

    return facts(base.variant) == facts(variant)
