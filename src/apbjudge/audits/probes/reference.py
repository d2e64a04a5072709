"""Dependence on the reference: the plan itself, or its likeness to another one?"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import chain

from ..outcomes import ProbeTable
from ..responses import BLIND, Pair, Response
from .base import AuditProbe
from .measures import (
    Flips,
    Value,
    by_truth,
    change,
    changes,
    count_text,
    describe,
    flipped,
    flips_of,
    grouped,
    kind,
    mean_text,
    of_truth,
    passed_text,
    repeat_notes,
    repeats_of,
    turned,
)

ECHOED = 0.15
"""Largest share of faulty plans that a wrong reference may make pass."""
FOREIGN = 0.15
"""Largest share of sound plans that a foreign reference may make fail."""
EQUIVALENT = 0.15
"""Largest share of verdicts that another good reference may flip, beyond flips by chance."""
WITHOUT = 0.15
"""Largest share of verdicts that may change in one direction without a reference."""

_ECHOED, _FOREIGN = "echoed-reference", "foreign-reference"
_AS_GOOD = ("equivalent-reference", "reworded-reference")
"""Kinds after which the reference is as good as before."""
_ORDER = (_ECHOED, _FOREIGN, *_AS_GOOD)


class ReferenceUse(AuditProbe):
    """Compares the effects of other references, and of no reference, with the limits.

    Variants with the role ``reference`` are compared with their parents, and the run without the
    reference with the main run.
    """

    name = "reference"
    title = "Dependence on the reference"
    question = (
        "Does the judge examine the plan itself, or compare it with the reference it is shown?"
    )
    roles = ("reference",)
    nothing = "no reference was exchanged or omitted, or no such request has a verdict"

    @cached_property
    def asked(self) -> list[Response]:
        """The variants, and all judgements without a reference."""
        blind = (r for r in self.audit.all if r.run == BLIND)
        return [*self.audit.asked(*self.roles), *blind]

    @cached_property
    def blind(self) -> list[Pair]:
        """Plans judged without a reference, each with its judgement in the main run."""
        return self.audit.across(BLIND)

    @cached_property
    def flips(self) -> dict[str, Flips]:
        """Flips by references that are as good as the case's own; empty if there are none."""
        pairs = [pair for pair in self.pairs if kind(pair[0]) in _AS_GOOD]
        return {"equivalent": flips_of(self.audit, pairs)} if pairs else {}

    def values(self) -> Iterable[Value | None]:
        """Changes of passing by a wrong reference and by none, flips by one that is as good."""
        kinds = grouped(self.pairs, kind)
        yield change("echoed", kinds.get(_ECHOED, []), "at most", ECHOED)
        yield change("foreign", kinds.get(_FOREIGN, []), "within", FOREIGN)
        yield change(
            "blind, correct plans", of_truth(self.blind, is_correct=True), "within", WITHOUT
        )
        yield change(
            "blind, faulty plans", of_truth(self.blind, is_correct=False), "within", WITHOUT
        )
        yield from (of.value(name, EQUIVALENT) for name, of in self.flips.items())
        yield from changes("{}: change of passing", kinds)

    def used(self) -> Iterable[Response]:
        """The judgements, those that they are compared with, and the repeats for flips."""
        parents = (other for child, other in self.pairs if kind(child) in _AS_GOOD)
        repeats = (repeats_of(self.audit, parent) for parent in parents)
        others = (other for _, other in (*self.pairs, *self.blind))
        return chain(self.asked, others, *repeats)

    def tables(self) -> Iterable[ProbeTable]:
        """Pass rates by the reference, and without one by truth."""
        blind = {f"no reference, {name}": of for name, of in by_truth(self.blind).items()}
        blind.pop("no reference, unlabelled plans", None)
        yield ProbeTable.of(
            "Pass rate by the reference shown",
            "reference",
            {**grouped(self.pairs, kind), **blind},
            {
                "n": count_text,
                "passed before": lambda of: passed_text(other for _, other in of),
                "passed with it": lambda of: passed_text(child for child, _ in of),
                "change": lambda of: mean_text(map(turned, of), "points"),
            },
        )

    def examples(self) -> Iterable[tuple[Response, str]]:
        """Verdicts that changed, those by echoed and foreign references first."""
        order = {name: n for n, name in enumerate(_ORDER)}
        changed = filter(flipped, (*self.pairs, *self.blind))
        for response, other in sorted(changed, key=lambda p: order.get(kind(p[0]), len(order))):
            name = "with the reference" if response.run == BLIND else "with the case's own"
            yield response, describe(response, other, name)

    def notes(self) -> Iterable[str]:
        """The meaning of relying on the reference, and what could not be compared."""
        yield (
            "relying on the reference is not a fault in itself where every case has a good one; "
            "but then the verdict on plans that differ from it depends on it"
        )
        yield from (*repeat_notes(self.flips), *super().notes())
