"""Plants exactly one fault of a known kind into a plan taken as correct.

Every kind names its code, the codes that may hold as its consequences, and whether code proves
it. A variant in which code finds anything else is not made: what leaves here has the fault that
it says, as far as code can tell.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ...records import ErrorCode
from ..variants import Truth, Variant
from . import other_faults, plan_faults, step_faults, tool_faults, value_faults
from .bases import Base
from .edits import Change, Kind, seeded
from .guards import proves_only, reads_as_meant


def _codes(names: str) -> frozenset[ErrorCode]:
    known: tuple[ErrorCode, ...] = ("E1", "E2", "E3", "E4", "E5", "E6")
    return frozenset(code for code in known if code in names.split())


KINDS: tuple[Kind, ...] = (
    Kind(
        name="change-goal",
        code="E1",
        also=_codes("E3 E5 E6"),
        severity="fatal",
        what="another person, place or thing stands where the one is that the query is about",
        plant=value_faults.change_goal,
    ),
    Kind(
        name="drop-call",
        code="E2",
        also=_codes("E4"),
        severity="major",
        form="plan",
        what="a call is left out that makes something asked for",
        plant=plan_faults.drop_call,
    ),
    Kind(
        name="reject-solvable",
        code="E2",
        severity="fatal",
        is_proven=True,
        form="plan",
        what="a task that can be solved is rejected",
        plant=plan_faults.reject_solvable,
    ),
    Kind(
        name="conclude-early",
        code="E2",
        also=_codes("E6"),
        severity="major",
        form="steps",
        what="the last step says that all is done and makes no call",
        plant=step_faults.conclude_early,
    ),
    Kind(
        name="breach-value",
        code="E3",
        also=_codes("E1 E5"),
        severity="fatal",
        what="a date, a number or a choice differs from what the query states",
        plant=value_faults.breach_value,
    ),
    Kind(
        name="breach-limit",
        code="E3",
        also=_codes("E4 E5"),
        severity="major",
        form="plan",
        what="a tool is called twice where the query asks for one call",
        plant=plan_faults.breach_limit,
    ),
    Kind(
        name="swap-order",
        code="E4",
        also=_codes("E6"),
        severity="major",
        form="plan",
        what="a call stands before the one whose result it needs",
        plant=plan_faults.swap_order,
    ),
    Kind(
        name="use-early",
        code="E4",
        also=_codes("E5 E6"),
        severity="major",
        is_proven=True,
        what="a value refers to the result of a tool that has not been called by then",
        plant=plan_faults.early_reference,
    ),
    Kind(
        name="ignore-data",
        code="E4",
        also=_codes("E2"),
        severity="major",
        form="steps",
        what="the call that has just been answered is made again",
        plant=step_faults.ignore_data,
    ),
    Kind(
        name="drop-parameter",
        code="E5",
        also=_codes("E4"),
        severity="minor",
        is_proven=True,
        what="a required parameter is left out",
        plant=tool_faults.drop_parameter,
    ),
    Kind(
        name="invent-parameter",
        code="E5",
        also=_codes("E6"),
        severity="minor",
        is_proven=True,
        what="a parameter is passed that the tool does not have",
        plant=tool_faults.invent_parameter,
    ),
    Kind(
        name="wrong-type",
        code="E5",
        severity="minor",
        is_proven=True,
        form="steps",
        what="a value has a type that the schema does not allow",
        plant=tool_faults.wrong_type,
    ),
    Kind(
        name="wrong-enum",
        code="E5",
        also=_codes("E3"),
        severity="minor",
        is_proven=True,
        form="steps",
        what="a value is none of those which the schema allows",
        plant=tool_faults.wrong_enum,
    ),
    Kind(
        name="wrong-tool",
        code="E5",
        also=_codes("E2 E4"),
        severity="major",
        what="a call is made of another tool that can't do what is needed",
        plant=tool_faults.wrong_tool,
    ),
    Kind(
        name="use-distractor",
        code="E5",
        also=_codes("E2 E4"),
        severity="minor",
        is_proven=True,
        what="a distractor is called",
        plant=tool_faults.use_distractor,
    ),
    Kind(
        name="unknown-tool",
        code="E6",
        also=_codes("E5"),
        severity="fatal",
        is_proven=True,
        what="a tool is called that does not exist",
        plant=tool_faults.unknown_tool,
    ),
    Kind(
        name="unmade-result",
        code="E6",
        also=_codes("E4 E5"),
        severity="fatal",
        form="plan",
        what="a value comes from a message or document that there is not",
        plant=plan_faults.unmade_result,
    ),
    Kind(
        name="invented-id",
        code="E6",
        also=_codes("E4 E5"),
        severity="fatal",
        form="steps",
        what="an id is passed that no result has given",
        plant=step_faults.invented_id,
    ),
    Kind(
        name="retry-broken",
        code=None,
        category=3,
        shape="category",
        severity="major",
        is_proven=True,
        what="the broken tool is called again",
        plant=other_faults.retry_broken,
    ),
    Kind(
        name="give-up",
        code=None,
        category=4,
        shape="category",
        severity="major",
        what="the task is given up after the error",
        plant=other_faults.give_up,
    ),
    Kind(
        name="talk-only",
        code=None,
        category=5,
        shape="category",
        severity="major",
        what="the error is spoken of, and neither is a call made nor the task given up",
        plant=other_faults.talk_only,
    ),
    Kind(
        name="unlisted-tool",
        code=None,
        category=5,
        shape="category",
        severity="fatal",
        is_proven=True,
        what="the error is answered with a tool that does not exist",
        plant=tool_faults.unknown_tool,
    ),
    Kind(
        name="carry-on",
        code=None,
        shape="pass",
        severity="fatal",
        what="a case that can't be solved is carried out with made-up values",
        plant=other_faults.carry_on,
    ),
    Kind(
        name="guess-value",
        code=None,
        shape="pass",
        severity="fatal",
        what="what is missing is replaced by an assumption, and said so",
        plant=other_faults.guess_value,
    ),
)
"""Every way of planting a fault."""


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
    fitting = (kind for kind in KINDS if kinds is None or kind.name in kinds)
    made = (_planted(base, kind, seed) for kind in fitting if _fits(base, kind))
    return tuple(variant for variant in made if variant is not None)


def _fits(base: Base, kind: Kind) -> bool:
    return kind.shape == base.rubric.shape and kind.form in (None, base.item.form)


def _planted(base: Base, kind: Kind, seed: int) -> Variant | None:
    change = kind.plant(base, seeded(seed, base.name, kind.name))
    if change is None:
        return None
    variant = _variant(base, kind, change)
    item = base.read(variant)
    is_sound = reads_as_meant(base, item, change.reply) and proves_only(base, item, kind)
    return variant if is_sound else None


def _variant(base: Base, kind: Kind, change: Change) -> Variant:
    truth = Truth(is_correct=False, category=kind.category)
    if kind.code is not None:
        truth = replace(truth, codes=frozenset({kind.code}), also=kind.also)
    return base.derived(
        "fault",
        kind.name,
        what=change.what,
        truth=truth,
        reply=change.reply,
        case=change.case,
        severity=kind.severity,
    )
