"""Another reference beside the same plan: a judge must weigh the plan, not its likeness."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import Any

from ...protocols import matches_reference
from ...records import Reference
from ..variants import Variant
from .bases import Base
from .drafts import Draft
from .prose import kept, objects, sentences


def other_references(
    base: Base, fault: Variant | None, others: Sequence[Base], *, seed: int
) -> tuple[Variant, ...]:
    """Puts other references beside a base, and a faulty plan beside itself.

    - ``echoed-reference`` (of the fault): the reference is the faulty plan.
    - ``foreign-reference`` (of the base): the reference of another case, which no plan for this
      one resembles. Not for cases with a broken tool.
    - ``reworded-reference`` (of the base): the same calls, other words.
    - ``equivalent-reference`` (of the base): a base that humans passed and that takes another way
      than the reference becomes the reference itself.

    Args:
        base: The base.
        fault: One of its variants with a planted fault, None where there is none.
        others: Bases whose references may be lent; those of the same case are passed over.
        seed: Seed of the choice among them.

    Returns:
        At most one variant of each kind, none for cases without a solution or without a
        reference; each has calls, arguments and proven findings of its parent.
    """
    if base.item.condition.unsolvable_type or base.item.reference is None:
        return ()
    plain = base.variant
    found = kept(base, fault, [_echoed(base, fault)]) if fault else ()
    beside_base = [_foreign(base, others, seed), _reworded(base), _equivalent(base)]
    return (*found, *kept(base, plain, beside_base))


def _echoed(base: Base, fault: Variant) -> Variant | None:
    draft = Draft.of_prediction(base.read(fault))
    if draft is None or draft.refusal is not None:
        return None
    return base.derived(
        "reference",
        "echoed-reference",
        what=f"the reference is this very plan, faulty as it is ({fault.kind})",
        truth=fault.truth,
        case=_as_reference(draft),
        parent=fault,
    )


def _foreign(base: Base, others: Sequence[Base], seed: int) -> Variant | None:
    item = base.item
    lenders = [other for other in others if _may_lend(base, other)]
    if not lenders or item.condition.broken_tool:
        return None
    lender = Random(f"{seed}/{base.name}/foreign-reference").choice(lenders)  # noqa: S311
    return base.derived(
        "reference",
        "foreign-reference",
        what=f"the reference is that of another case ({lender.item.case_id})",
        truth=base.truth,
        case=_fields(lender.item.reference) if lender.item.reference else None,
        parent=base.variant,
    )


def _may_lend(base: Base, other: Base) -> bool:
    """Whether a base has a reference of the same form that has no tool in common with this one."""
    own, reference = base.item, other.item.reference
    if reference is None or reference.form != own.form or other.item.case_id == own.case_id:
        return False
    if other.item.condition.horizon != own.condition.horizon:
        return False
    known = own.tools.names if own.tools else frozenset[str]()
    return bool(reference.names) and known.isdisjoint(reference.names)


def _reworded(base: Base) -> Variant | None:
    case = retold(base, base.variant)
    if case is None:
        return None
    return base.derived(
        "reference",
        "reworded-reference",
        what="the reference says the same in other words, with the same calls",
        truth=base.truth,
        case=case,
        parent=base.variant,
    )


def _equivalent(base: Base) -> Variant | None:
    if base.origin != "label" or matches_reference(base.item) is not False:
        return None
    return base.derived(
        "reference",
        "equivalent-reference",
        what="the reference is this plan, which humans passed, and no longer the expert's",
        truth=base.truth,
        case=_as_reference(base.draft),
        parent=base.variant,
    )


def _as_reference(draft: Draft) -> dict[str, Any]:
    """The row's fields with a draft as the expert's solution."""
    value = draft.value
    if draft.form == "plan":
        return {"plan": value["plan"], "tool_chain": value["tool_chain"]}
    return {"ground_truth_steps": value if isinstance(value, list) else [value]}


def _fields(reference: Reference) -> dict[str, Any]:
    if reference.form == "plan":
        return {"plan": reference.plan, "tool_chain": list(reference.value)}
    return {"plan": reference.plan, "ground_truth_steps": list(reference.value)}


_WORDS = {
    "because": "since",
    "afterwards": "later on",
    "cheapest": "lowest-priced",
    "fetch": "retrieve",
    "fetches": "retrieves",
    "obtain": "get",
    "obtains": "gets",
    "needed": "required",
    "needs": "requires",
    "at least": "no fewer than",
    "at most": "no more than",
    "as well": "too",
    "so that": "such that",
    "start with": "begin with",
    "starts with": "begins with",
    "finally": "lastly",
}
"""Words that mean the same wherever they stand in a sentence."""

_KNOWN = re.compile(rf"(?<![\w-])(?:{'|'.join(sorted(_WORDS, key=len)[::-1])})(?![\w-])", re.I)
_WORD_KEYS = ("reason", "thought", "content", "reasoning")


def retold(base: Base, parent: Variant) -> dict[str, Any] | None:
    """The reference in other words, with the same calls.

    Words are exchanged for others of the same meaning; a sentence without such a word gets a
    start that says nothing new, and the prose of a plan a summary of its calls.

    Args:
        base: The base.
        parent: Whose reference it is.

    Returns:
        The row's fields that change; None where there is no reference, none that counts (a case
        without a solution), or one without a word.
    """
    reference = base.read(parent).reference
    if reference is None or base.item.condition.unsolvable_type:
        return None
    before = _fields(reference)
    after = before | {
        key: [_retold_entry(entry) for entry in objects(value)]
        for key, value in before.items()
        if isinstance(value, list)
    }
    if reference.plan:
        after["plan"] = _summed_up(reference)
    return after if after != before else None


def _retold_entry(entry: dict[str, Any]) -> dict[str, Any]:
    """A call or message with its words changed; what a tool answered is not touched."""
    if entry.get("role", "assistant") != "assistant":
        return entry
    return {key: _told(value) if key in _WORD_KEYS else value for key, value in entry.items()}


def _told(value: Any) -> Any:
    if not isinstance(value, str) or not value.strip():
        return value
    changed = _other_words(value)
    return changed if changed != value else f"To put it in words: {value}"


def _summed_up(reference: Reference) -> str:
    told = " ".join(_other_words(sentence) for sentence in sentences(reference.plan))
    names = list(dict.fromkeys(call.name for call in reference.calls if call.name))
    return f"{told} Tools, in the order of their first use: {', '.join(names)}." if names else told


def _other_words(text: str) -> str:
    return _KNOWN.sub(lambda match: _in_case(match.group()), text)


def _in_case(word: str) -> str:
    other = _WORDS[word.lower()]
    return other[0].upper() + other[1:] if word[0].isupper() else other
