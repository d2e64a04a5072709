"""The same plan with another reference: a judge must assess the plan, not the similarity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from ...protocols import matches_reference
from ...records import Reference
from .bases import Base
from .kinds import Change, Makers, Occasion, by_name
from .parts import ReplyParts, retold

OPENING = "To put it in words: "


def _echoed_reference(on: Occasion) -> Iterator[Change]:
    """The faulty plan itself becomes the reference."""
    echo = ReplyParts.of_prediction(on.item) if _is_fault(on) else None
    if _has_reference(on) and echo and echo.refusal is None:
        what = f"the reference is this very plan, faulty as it is ({on.parent.kind})"
        yield Change(what=what, case=_as_reference(echo))


def _foreign_reference(on: Occasion) -> Iterator[Change]:
    """The reference of another case, whose tools this case lacks."""
    if _has_reference(on) and not _is_fault(on) and not on.base.item.condition.broken_tool:
        for lender in (other.item for other in on.others if _may_lend(on.base, other)):
            what = f"the reference is that of another case ({lender.case_id})"
            yield Change(what=what, case=_fields(cast("Reference", lender.reference)))


def _reworded_reference(on: Occasion) -> Iterator[Change]:
    """The reference with the same calls in other words."""
    case = None if _is_fault(on) else retold_reference(on)
    if case is not None:
        yield Change(case=case)


def _equivalent_reference(on: Occasion) -> Iterator[Change]:
    """A passed plan that differs from the reference becomes the reference itself."""
    is_plan = on.base.origin == "label" and on.plan.refusal is None and not _is_fault(on)
    if _has_reference(on) and is_plan and matches_reference(on.base.item) is False:
        yield Change(case=_as_reference(on.plan))


MAKERS: Makers = by_name(
    _echoed_reference, _foreign_reference, _reworded_reference, _equivalent_reference
)


def _has_reference(on: Occasion) -> bool:
    return on.base.item.reference is not None and not on.base.item.condition.unsolvable_type


def _is_fault(on: Occasion) -> bool:
    return on.parent.role == "fault"


def _may_lend(base: Base, other: Base) -> bool:
    """True if another base has a reference of the same form, with none of this case's tools."""
    own, reference = base.item, other.item.reference
    if reference is None or reference.form != own.form or other.item.case_id == own.case_id:
        return False
    if other.item.condition.horizon != own.condition.horizon:
        return False
    known = own.tools.names if own.tools else frozenset[str]()
    return bool(reference.names) and known.isdisjoint(reference.names)


def _as_reference(parts: ReplyParts) -> dict[str, Any]:
    """The row's fields with a reply as the expert's solution."""
    value = parts.value
    if parts.form == "plan":
        return value
    return {"ground_truth_steps": value if isinstance(value, list) else [value]}


def _fields(reference: Reference) -> dict[str, Any]:
    name = "tool_chain" if reference.form == "plan" else "ground_truth_steps"
    return {"plan": reference.plan, name: list(reference.value)}


def retold_reference(on: Occasion) -> dict[str, Any] | None:
    """The row's fields with the reference in other words, with the same calls.

    The prose of a plan is rewritten from the calls; reasons and thoughts get an opening that adds
    nothing new. None without a reference, for an unsolvable case (whose reference does not count),
    or if the reference has no prose.
    """
    reference = on.item.reference
    if reference is None or on.base.item.condition.unsolvable_type:
        return None
    before = _fields(reference)
    after: dict[str, Any] = {
        key: [_opened(entry) for entry in cast("list[Any]", value)] if key != "plan" else value
        for key, value in before.items()
    }
    if reference.plan:
        after["plan"] = retold(reference.calls, on.tools)
    return after if after != before else None


def _opened(entry: Any) -> Any:
    """A call or message with an opening before its texts; results of tools stay the same."""
    if not isinstance(entry, dict):
        return entry
    fields, texts = cast("dict[str, Any]", entry), ("reason", "thought", "content", "reasoning")
    if fields.get("role", "assistant") != "assistant":
        return fields
    return {
        key: f"{OPENING}{value}"
        if key in texts and isinstance(value, str) and value.strip()
        else value
        for key, value in fields.items()
    }
