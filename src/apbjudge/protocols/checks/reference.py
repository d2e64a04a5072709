"""A prediction against the reference: shared faults, which prove nothing, and matches.

Schemas and tool lists of real data are sometimes wrong, and then the expert's own calls break them.
The reference shares a fault if it is of the same kind, tool and place inside the arguments, in
whichever call of the chain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from ...records import Finding, Item, Prediction, Step, call_name

Key = tuple[str, str, str, str]

_OWN = frozenset({"format", "retry-broken-tool", "offline-tool", "carried-on"})
"""Rules about the reply itself, or about cases whose reference is not a way to follow."""
_PROVEN_ELSEWHERE: Mapping[str, str] = dict.fromkeys(
    ("early-reference", "used-before-made"), "used-before-made"
)
"""Rules that may only suspect, with the rule that proves the same fault in a more explicit plan,
such as one with numbered lines or other marks."""


def spare_shared_faults(item: Item, find: Callable[[Item], Iterable[Finding]]) -> Iterator[Finding]:
    """The findings of an item; those that are proven of its reference too are only suspected.

    Args:
        item: The item.
        find: Function that finds them, in a prediction as in a reference put in its place.
    """
    shared: frozenset[Key] | None = None
    names: dict[str, str] = {}
    for finding in find(item):
        if finding.certainty != "proven" or finding.rule in _OWN or item.reference is None:
            yield finding
            continue
        if shared is None:
            shared = _faults_of_reference(item, find)
            names = _names(item.prediction)
        if _key(finding, names) not in shared:
            yield finding
            continue
        yield _suspected(finding, "the reference does the same")


def _suspected(finding: Finding, why: str) -> Finding:
    message = f"{finding.message}; {why}"
    return finding.model_copy(update={"certainty": "suspected", "message": message})


def hold_in_all_readings(
    item: Item, find: Callable[[Item], Iterable[Finding]]
) -> Iterator[Finding]:
    """The findings of an item; those not proven in all readings of its reply are only suspected.

    Last come those that are proven only in other readings, with their places there, and a plan that
    is carried out in one of them.

    Args:
        item: The item.
        find: Function that finds them in one reading.
    """
    if not item.prediction.others:
        yield from find(item)
        return
    readings = [
        [(finding, _key(finding, names)) for finding in find(reading)]
        for reading in item.readings
        for names in [_names(reading.prediction)]
    ]
    proven = [{key for f, key in listed if f.certainty == "proven"} for listed in readings]
    everywhere, seen = set[Key].intersection(*proven), set[Key]()
    for at, listed in enumerate(readings):
        for finding, key in listed:
            is_open = finding.certainty == "proven" and key not in everywhere
            is_open |= at > 0 and finding.rule == "carried-on"
            if at == 0 or (is_open and key not in seen):
                yield _suspected(finding, "the reply can be read otherwise") if is_open else finding
            seen.add(key)


def _faults_of_reference(item: Item, find: Callable[[Item], Iterable[Finding]]) -> frozenset[Key]:
    reference = item.reference
    if reference is None or not reference.value:
        return frozenset()
    kind = "plan" if item.form == "plan" else "steps"
    prediction = Prediction(kind=kind, plan=reference.plan, steps=reference.steps)
    names = _names(prediction)
    findings = find(item.model_copy(update={"prediction": prediction}))
    faults = (f for f in findings if f.certainty == "proven" or f.rule in _PROVEN_ELSEWHERE)
    return frozenset(_key(f, names) for f in faults)


def _names(prediction: Prediction) -> dict[str, str]:
    """The tool called at each place."""
    return {call.where: call.name for call in prediction.calls}


_CALL = re.compile(r"^(?:tool_chain\[\d+\]|step\[\d+\](?:\.tool_calls\[\d+\])?)")
_INDEX = re.compile(r"\[\d+\]")


def _key(finding: Finding, names: dict[str, str]) -> Key:
    """Rule, tool, place inside its arguments, and what is broken there."""
    place = _CALL.match(finding.where)
    call = place.group() if place else ""
    inside = _INDEX.sub("[]", finding.where[len(call) :])
    rule = _PROVEN_ELSEWHERE.get(finding.rule, finding.rule)
    if rule == "used-before-made":
        inside = ""  # the order of the tools is at fault, wherever the result goes
    if rule == "carried-on":
        return rule, "", "", ""  # for any calls, in any number
    _, breaks, limit = finding.message.rpartition(" breaks ")
    return rule, names.get(call, ""), inside, limit if breaks else finding.message


Chain = list[list[str]]
"""Names of the tools called, step by step."""

_NO_STEP = ("tool", "function", "user", "system", "developer")
"""Roles of messages that may be between the steps of a reference."""


def matches_reference(item: Item) -> bool | None:
    """True if the prediction calls the tools of the reference, in its order.

    Names have to be identical; within a step the order of the calls is free. Arguments are not
    compared, as those of a whole plan are prose. Hence a match does not make a prediction correct,
    and a correct one need not match. It separates correct predictions that follow the reference
    from those that take another way (arXiv:2606.04874, appendix D.2, where annotators separated
    them by eye).

    Returns:
        None if there is no reference chain, if the prediction has no readable one (a rejection,
        prose), and for cases with a broken tool or without a solution, whose reference is not one
        way among others.
    """
    expected, planned = _expected(item), _planned(item)
    return None if expected is None or planned is None else expected == planned


def _expected(item: Item) -> Chain | None:
    reference, condition = item.reference, item.condition
    if reference is None or condition.broken_tool or condition.unsolvable_type:
        return None
    if reference.form == "plan":
        chain = [[call_name(call)] for call in reference.value]
    else:
        messages = zip(reference.value, reference.steps, strict=True)
        chain = _names_called(step for value, step in messages if value.get("role") not in _NO_STEP)
    is_usable = chain and all(name for names in chain for name in names)
    return chain if is_usable else None


def _planned(item: Item) -> Chain | None:
    prediction = item.prediction
    if prediction.kind not in ("plan", "steps"):
        return None
    for problem in prediction.problems:
        if problem.where == "tool_chain" or problem.where.endswith(".tool_calls"):
            return None  # not a list of calls, so the calls are unknown
    return _names_called(prediction.steps)


def _names_called(steps: Iterable[Step]) -> Chain:
    return [sorted(call.name for call in step.calls) for step in steps]
