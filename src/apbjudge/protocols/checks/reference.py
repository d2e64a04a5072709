"""What the reference does too proves nothing.

Schemas and tool lists of real data are now and then wrong, and then the expert's own calls break
them. A fault is the reference's as well when it is of the same kind, of the same tool and at the
same place inside its arguments; whether it is the same call of the chain does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from ...records import Finding, Item, Prediction

Key = tuple[str, str, str, str]

_OWN = frozenset({"format", "retry-broken-tool", "carried-on"})
"""Rules about the reply itself, or about cases whose reference is no way to be taken."""
_PROVEN_ELSEWHERE = {"early-reference": "used-before-made"}
"""Of a rule that is only suspected, the one by which the same fault is proven in a plan that says
more of itself, as by numbered lines."""


def spare_shared_faults(item: Item, find: Callable[[Item], Iterable[Finding]]) -> Iterator[Finding]:
    """The findings of an item; what is proven of its reference as well is only suspected.

    Args:
        item: The item.
        find: What finds them, in a prediction as in a reference put in its place.
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
        message = f"{finding.message}; the reference does the same"
        yield finding.model_copy(update={"certainty": "suspected", "message": message})


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
        inside = ""  # the order of the tools is at fault, wherever the result goes to
    _, breaks, limit = finding.message.rpartition(" breaks ")
    return rule, names.get(call, ""), inside, limit if breaks else finding.message
