"""Presentation: does the verdict change when the same plan is shown in another way?"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import chain

from ..outcomes import ProbeTable
from ..responses import Response
from .base import AuditProbe
from .measures import (
    Flips,
    Value,
    count_text,
    describe,
    flipped,
    flips_of,
    grouped,
    kind,
    kind_figures,
    mean_text,
    own_flips,
    repeat_notes,
    repeats_of,
    turned,
)

SHIFT = 0.10
"""A change that says nothing about the plan may flip one verdict in ten, beyond flips by chance."""


class Presentation(AuditProbe):
    """Compares flips against the parent, less the parent's own, with the limit, by kind.

    Variants with the role ``shown`` are compared with their parents, and the parents with their
    repeats in ``again-1``, ….
    """

    name = "presentation"
    title = "Presentation"
    question = "Does the verdict change when the same plan is shown in another way?"
    roles = ("shown",)
    nothing = "no plan was presented in another way, or none of those has a verdict"

    @cached_property
    def flips(self) -> dict[str, Flips]:
        """Flips by the kind of change."""
        kinds = grouped(self.pairs, kind)
        return {name: flips_of(self.audit, of) for name, of in kinds.items()}

    def values(self) -> Iterable[Value | None]:
        """Flips of each kind, and their effects on correct and on faulty plans."""
        yield from (of.value(name, SHIFT) for name, of in self.flips.items())
        yield from kind_figures(self.pairs)

    def used(self) -> Iterable[Response]:
        """The variants, their parents and the repeats of these."""
        names = dict.fromkeys(r.variant.parent or "" for r in self.asked)
        parents = [parent for parent in map(self.audit.find, names) if parent is not None]
        repeats = (repeats_of(self.audit, parent) for parent in parents)
        return chain(self.asked, parents, *repeats)

    def tables(self) -> Iterable[ProbeTable]:
        """Flips by kind."""
        yield ProbeTable.of(
            "Verdicts that flip, by change of presentation",
            "changed",
            self.flips,
            {
                "n": lambda of: count_text(of.rows),
                "flipped": lambda of: mean_text(map(flipped, of.rows)),
                "flip when asked again": lambda of: (
                    mean_text(map(own_flips, of.rows)) if of.is_asked_again else "–"
                ),
                "change of passing": lambda of: mean_text(map(turned, of.rows), "points"),
            },
        )

    def examples(self) -> Iterable[tuple[Response, str]]:
        """Verdicts that flipped."""
        for response, parent, *_ in chain(*(of.rows for of in self.flips.values())):
            if flipped((response, parent)):
                yield response, describe(response, parent, "before")

    def notes(self) -> Iterable[str]:
        """Kinds without repeats, and judgements without a verdict."""
        return *repeat_notes(self.flips), *super().notes()
