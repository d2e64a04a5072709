"""What is checked of a variant before it is used, so that it is what it says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from ...errors import RowError
from ...records import Call, ErrorCode, Finding, Item
from ..variants import Variant
from .bases import Base
from .kinds import Kind
from .parts import ReplyParts

CARRIED_ON = "carried-on"


def proven(findings: tuple[Finding, ...]) -> frozenset[tuple[str, ErrorCode | None]]:
    """Rule and code of the proven findings."""
    return frozenset((f.rule, f.code) for f in findings if f.certainty == "proven")


def reads_as_meant(base: Base, item: Item, reply: ReplyParts | str | None) -> bool:
    """Whether a variant is read without problems, as its parts, and is not the base over again."""
    if item.prediction.problems or item.prediction.kind == "text":
        return False
    if isinstance(reply, ReplyParts) and _calls(item.prediction.calls) != _calls(reply.calls):
        return False
    return item.response != base.parts.text or item.query != base.item.query


def _calls(calls: Iterable[Call]) -> list[tuple[str, object]]:
    return [(call.name, call.arguments or {}) for call in calls]


def proves_only(base: Base, item: Item, kind: Kind) -> bool:
    """Whether code proves the planted fault where it should, and no other one."""
    if base.rubric.shape == "category":
        category = base.protocol.categorise(item)
        return category == kind.category or (category is None and not kind.is_proven)
    findings = base.find(item)
    if base.rubric.shape == "pass":
        return any(finding.rule == CARRIED_ON for finding in findings)
    codes = {code for _, code in proven(findings)}
    return codes <= {kind.code, *kind.also} and (not kind.is_proven or kind.code in codes)


def leaves_as_is(base: Base, item: Item) -> bool:
    """Whether code finds in a variant what it finds in the base, category and all."""
    categorise = base.protocol.categorise
    before, after = proven(base.find(base.item)), proven(base.find(item))
    return before == after and categorise(base.item) == categorise(item)


def planned(
    base: Base, variant: Variant, *, apart_from: tuple[int, str] | None = None
) -> tuple[object, ...] | None:
    """What a variant plans, as far as code can tell: equal for variants that plan the same.

    Kind of the reply, faults of its form, its calls step by step with all arguments, the category
    that follows from names, and every proven finding.

    Args:
        base: Its base.
        variant: The variant.
        apart_from: An argument whose value does not count: number of the call and name of the
            parameter.

    Returns:
        Something to be compared; None where the row can't be read.
    """
    try:
        item = base.read(variant)
    except RowError:
        return None
    at, parameter = apart_from or (-1, "")
    prediction = item.prediction
    calls: list[object] = []
    for n, call in enumerate(prediction.calls):
        arguments = dict(call.arguments) if call.arguments is not None else None
        if n == at and arguments:
            arguments[parameter] = type(arguments.get(parameter))
        calls.append((call.name, arguments))
    findings = base.find(item)
    facts = Counter((f.rule, f.code, f.where) for f in findings if f.certainty == "proven")
    sizes = [len(step.calls) for step in prediction.steps]
    category = base.protocol.categorise(item)
    return prediction.kind, sizes, calls, facts, prediction.problems, category


def faithful(
    base: Base, parent: Variant, variants: Iterable[Variant | None]
) -> tuple[Variant, ...]:
    """The variants that differ from the parent and plan the same."""
    before = planned(base, parent)
    if before is None:
        return ()
    return tuple(
        v
        for v in variants
        if v is not None and _differs(parent.row, v.row) and planned(base, v) == before
    )


def _differs(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a judge would be shown anything else: the order of keys counts, the id does not."""
    names = [[name for name in row if name != "id"] for row in (before, after)]
    return names[0] != names[1] or any(
        before[name] is not after[name] and orjson.dumps(before[name]) != orjson.dumps(after[name])
        for name in names[0]
    )


def parts_of(base: Base, variant: Variant) -> ReplyParts | None:
    """The reply of a variant in parts; None unless that is how it is written."""
    parts = ReplyParts.of_prediction(base.read(variant))
    return parts if parts and parts.text == variant.row["model_response"] else None
