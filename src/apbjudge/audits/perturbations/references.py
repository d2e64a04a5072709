"""The same plan with another reference: a judge must assess the plan, not the likeness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from ...protocols import matches_reference
from ...records import Reference
from ..variants import Variant
from .bases import Base, faithful
from .parts import ReplyParts, retold, seeded

OPENING = "To put it in words: "


def other_references(
    base: Base, fault: Variant | None, others: Sequence[Base], *, seed: int
) -> tuple[Variant, ...]:
    """Shows a base with other references, and a faulty plan with itself as reference.

    - ``echoed-reference`` (of the fault): the reference is the faulty plan.
    - ``foreign-reference`` (of the base): the reference of another case, which no plan for this
      one resembles. Not for cases with a broken tool.
    - ``reworded-reference`` (of the base): the same calls, other words.
    - ``equivalent-reference`` (of the base): a base that humans passed and that takes another way
      than the reference becomes the reference itself.

    None for cases without a solution or without a reference; each has calls, arguments and proven
    findings of its parent. ``others`` are bases whose references may be lent.
    """
    item, own = base.item, base.variant
    if item.condition.unsolvable_type or item.reference is None:
        return ()
    changes: list[tuple[Variant, str, str, dict[str, Any]]] = []
    echo = ReplyParts.of_prediction(base.read(fault)) if fault else None
    if fault and echo and echo.refusal is None:
        what = f"the reference is this very plan, faulty as it is ({fault.kind})"
        changes.append((fault, "echoed", what, _as_reference(echo)))
    lenders = [] if item.condition.broken_tool else [o for o in others if _may_lend(base, o)]
    if lenders:
        lender = seeded(seed, base.name, "foreign-reference").choice(lenders).item
        what = f"the reference is that of another case ({lender.case_id})"
        changes.append((own, "foreign", what, _fields(cast("Reference", lender.reference))))
    if (case := retold_reference(base, own)) is not None:
        what = "the reference says the same in other words, with the same calls"
        changes.append((own, "reworded", what, case))
    is_plan = base.origin == "label" and base.parts.refusal is None
    if is_plan and matches_reference(item) is False:
        what = "the reference is this plan, which humans passed, and no longer the expert's"
        changes.append((own, "equivalent", what, _as_reference(base.parts)))
    return tuple(
        variant
        for parent, name, what, case in changes
        for variant in faithful(
            base,
            parent,
            [base.derived("reference", f"{name}-reference", what=what, case=case, parent=parent)],
        )
    )


def _may_lend(base: Base, other: Base) -> bool:
    """True if another base has a reference of the same form without a tool of this one."""
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


def retold_reference(base: Base, parent: Variant) -> dict[str, Any] | None:
    """The row's fields with the reference in other words, with the same calls.

    The prose of a plan is retold from the calls; reasons and thoughts get an opening that says
    nothing new. None where there is no reference, none that counts (a case without a solution),
    or one without a word.
    """
    reference = base.read(parent).reference
    if reference is None or base.item.condition.unsolvable_type:
        return None
    before = _fields(reference)
    after: dict[str, Any] = {
        key: [_opened(entry) for entry in cast("list[Any]", value)] if key != "plan" else value
        for key, value in before.items()
    }
    if reference.plan:
        after["plan"] = retold(reference.calls, base.item.tools)
    return after if after != before else None


def _opened(entry: Any) -> Any:
    """A call or message with its words changed; what a tool answered is not touched."""
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
