"""What is checked of a variant before it leaves, so that it is what it says."""

from __future__ import annotations

from ...records import Call, ErrorCode, Finding, Item
from .bases import Base
from .drafts import Draft
from .edits import Kind

CARRIED_ON = "carried-on"


def proven(found: tuple[Finding, ...]) -> frozenset[tuple[str, ErrorCode | None]]:
    """Rule and code of the proven findings."""
    return frozenset((f.rule, f.code) for f in found if f.certainty == "proven")


def reads_as_meant(base: Base, item: Item, reply: Draft | str) -> bool:
    """Whether a variant is read without problems, as its draft, and is not the base over again."""
    if item.prediction.problems or item.prediction.kind == "text":
        return False
    if isinstance(reply, Draft) and _calls(tuple(item.prediction.calls)) != _calls(reply.calls):
        return False
    return item.response != base.draft.text or item.query != base.item.query


def _calls(calls: tuple[Call, ...]) -> list[tuple[str, object]]:
    return [(call.name, call.arguments or {}) for call in calls]


def proves_only(base: Base, item: Item, kind: Kind) -> bool:
    """Whether code proves the planted fault where it should, and no other one."""
    if kind.shape == "category":
        category = base.protocol.categorise(item)
        return category == kind.category or (category is None and not kind.is_proven)
    found = base.find(item)
    if kind.shape == "pass":
        return any(finding.rule == CARRIED_ON for finding in found)
    codes = {code for _, code in proven(found)}
    return codes <= {kind.code, *kind.also} and (not kind.is_proven or kind.code in codes)


def leaves_as_is(base: Base, item: Item) -> bool:
    """Whether code finds in a variant what it finds in the base, category and all."""
    categorise = base.protocol.categorise
    before, after = proven(base.find(base.item)), proven(base.find(item))
    return before == after and categorise(base.item) == categorise(item)
