"""Whether a prediction takes the reference's way or another."""

from __future__ import annotations

from collections.abc import Iterable

from ...records import Item, Step, call_name

Chain = list[list[str]]
"""Names of the tools called, step by step."""

_NO_STEP = ("tool", "function", "user", "system", "developer")
"""Roles of messages that may stand between the steps of a reference."""


def matches_reference(item: Item) -> bool | None:
    """Whether the prediction calls the tools of the reference, in its order.

    Names have to be equal letter by letter; within a step the order of the calls is free.
    Arguments are not compared, as those of a whole plan are prose. Hence a match does not make a
    prediction correct, and a correct one need not match. It tells correct predictions that go
    another way from those that go the reference's (arXiv:2606.04874, appendix D.2, where
    annotators told them apart by eye).

    Returns:
        None when there is no reference chain, when the prediction has no readable one (a
        rejection, prose), and for cases with a broken tool or without a solution, where the
        reference is not a way that others could be told from.
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
        chain = _names(step for value, step in messages if value.get("role") not in _NO_STEP)
    is_usable = chain and all(name for names in chain for name in names)
    return chain if is_usable else None


def _planned(item: Item) -> Chain | None:
    prediction = item.prediction
    places = (problem.where for problem in prediction.problems)
    if prediction.kind not in ("plan", "steps") or any(map(_holds_calls, places)):
        return None
    return _names(prediction.steps)


def _holds_calls(where: str) -> bool:
    """Whether a problem is with a list of calls as a whole, so that the calls aren't known."""
    return where == "tool_chain" or where.endswith(".tool_calls")


def _names(steps: Iterable[Step]) -> Chain:
    return [sorted(call.name for call in step.calls) for step in steps]
