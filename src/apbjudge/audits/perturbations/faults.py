"""Plants exactly one fault of a known kind into a plan taken as correct.

Every kind names its code, the codes that may hold as its consequences, and whether code proves
it. A variant in which code finds anything else is left out: each has the fault that it says, as
far as code can tell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ..variants import Truth, Variant
from . import flow_faults, tool_faults, value_faults
from .bases import Base
from .checks import proves_only, reads_as_meant
from .kinds import Kind, Maker, kinds_of, variant_of
from .parts import seeded

KINDS = kinds_of("faults")
"""Every way of planting a fault."""

_MAKERS: Mapping[str, Maker] = {
    "change-goal": value_faults.change_goal,
    "drop-call": flow_faults.drop_call,
    "reject-solvable": flow_faults.reject_solvable,
    "conclude-early": flow_faults.conclude_early,
    "breach-value": value_faults.breach_value,
    "breach-limit": flow_faults.breach_limit,
    "swap-order": flow_faults.swap_order,
    "use-early": flow_faults.use_early,
    "ignore-data": flow_faults.ignore_data,
    "drop-parameter": tool_faults.drop_parameter,
    "invent-parameter": tool_faults.invent_parameter,
    "wrong-type": tool_faults.wrong_type,
    "wrong-enum": tool_faults.wrong_enum,
    "wrong-tool": tool_faults.wrong_tool,
    "use-distractor": tool_faults.use_distractor,
    "unknown-tool": tool_faults.unknown_tool,
    "unmade-result": value_faults.unmade_result,
    "invented-id": value_faults.invented_id,
    "retry-broken": flow_faults.retry_broken,
    "give-up": flow_faults.give_up,
    "talk-only": flow_faults.talk_only,
    "unlisted-tool": tool_faults.unknown_tool,
    "carry-on": flow_faults.carry_on,
    "guess-value": flow_faults.guess_value,
}


def plant(base: Base, *, seed: int, kinds: Collection[str] | None = None) -> tuple[Variant, ...]:
    """Plants one fault of each kind that fits a base.

    Args:
        base: A plan taken as correct.
        seed: Decides which place and value is chosen; equal seeds give equal variants.
        kinds: Names of kinds, None for all.

    Returns:
        Variants of role ``fault``, at most one of each kind, in the order of KINDS. A kind is
        left out where the base gives no occasion for it, or where code finds in the variant
        another fault than the planted one, or none although it should.
    """
    return tuple(_planted(base, seed, kinds))


def _planted(base: Base, seed: int, kinds: Collection[str] | None) -> Iterator[Variant]:
    for kind in KINDS:
        if not kind.fits(base) or (kinds is not None and kind.name not in kinds):
            continue
        change = _MAKERS[kind.name](base, seeded(seed, base.name, kind.name))
        if change is None:
            continue
        variant = variant_of(base, "fault", kind, change, truth=truth_of(kind))
        item = base.read(variant)
        if reads_as_meant(base, item, change.reply) and proves_only(base, item, kind):
            yield variant


def truth_of(kind: Kind) -> Truth:
    """What is true of a plan with a fault of a kind."""
    if kind.code is None:
        return Truth(is_correct=False, category=kind.category)
    codes = frozenset({kind.code})
    return Truth(is_correct=False, codes=codes, also=kind.also, category=kind.category)
