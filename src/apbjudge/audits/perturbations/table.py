"""The table of perturbations: by role, the kinds, their makers and required properties."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from ..variants import Role, Variant
from . import faults, format_changes, harmless, padding, references
from .bases import Base
from .kinds import (
    Makers,
    Occasion,
    kinds_of,
    leaves_as_is,
    plans_the_same,
    proves_only,
    reads_as_meant,
)
from .parts import one_of


class Perturbation(NamedTuple):
    """The ways to make the variants of a role.

    Attributes:
        makers: The function of each kind, by name.
        holds: True if a variant is valid; others are left out.
        is_other_plan: True if the reply must be read as intended and differ from the base.
    """

    makers: Makers
    holds: Callable[[Occasion, Variant], bool]
    is_other_plan: bool = False


PERTURBATIONS: Mapping[Role, Perturbation] = {
    "fault": Perturbation(faults.MAKERS, proves_only, is_other_plan=True),
    "harmless": Perturbation(harmless.MAKERS, leaves_as_is, is_other_plan=True),
    "shown": Perturbation(format_changes.MAKERS, plans_the_same),
    "padded": Perturbation(padding.MAKERS, plans_the_same),
    "reference": Perturbation(references.MAKERS, plans_the_same),
}
"""A fault variant has exactly one fault, proven by rule where possible. A harmless change leaves
proven findings the same. All other variants have the plan of their parent."""


def perturbed(
    role: Role,
    base: Base,
    parent: Variant | None = None,
    *,
    seed: int,
    kinds: Collection[str] | None = None,
    others: Sequence[Base] = (),
) -> tuple[Variant, ...]:
    """One variant of each fitting kind of a role, in the order of the kinds.

    A kind is left out if the plan offers no place for it, or its variant would not be valid. Equal
    seeds give equal variants.

    Args:
        role: Purpose of the variants.
        base: The plan taken as correct.
        parent: The variant that is changed; None for the base's own.
        seed: Seed for the choice of places and values.
        kinds: Names of kinds; None for all.
        others: Bases whose references may be used.
    """
    makers, holds, is_other_plan = PERTURBATIONS[role]
    made: list[Variant] = []
    for kind in kinds_of(role):
        if not kind.fits(base) or (kinds is not None and kind.name not in kinds):
            continue
        on = Occasion(role, base, parent or base.variant, kind, seed, others)
        change = one_of(on.rng, list(makers[kind.name](on)))
        if change is None:
            continue
        variant = base.derived(
            role,
            kind.name,
            what=change.what or kind.what,
            truth=kind.truth,
            reply=change.reply,
            case=change.case,
            parent=on.parent,
            severity=kind.severity,
        )
        is_meant = not is_other_plan or reads_as_meant(on, change, variant)
        if is_meant and holds(on, variant):
            made.append(variant)
    return tuple(made)
