"""Form and emptiness: E3 for a broken output format, E2 for a plan without calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import orjson

from ...records import Finding, Item
from ...rubrics import Rubric
from .rules import finding


def output_format(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """What is off in the form of the reply; the rubric says which code it is.

    Proven where the tested model's prompt is known to have demanded the form. Elsewhere a reply in
    another form that was read all the same has no fault, and what could not be read is suspected.
    """
    demanded = item.format_demanded
    for problem in item.prediction.problems:
        if demanded or not problem.is_readable:
            certainty = "proven" if demanded else "suspected"
            yield finding("format", rubric.form_code, certainty, problem.where, problem.message)


def is_mute(item: Item) -> bool:
    """Whether the whole reply is one JSON object whose values, but for a REJECT, are all empty."""
    try:
        reply: object = orjson.loads(item.response)
    except ValueError:
        return False
    values = list(cast("dict[str, object]", reply).items()) if isinstance(reply, dict) else []
    own = "status" if item.prediction.kind == "reject" else ""
    words = [v for k, v in values if k != own and v not in (None, "", [], {}, False)]
    return bool(values) and all(isinstance(v, str) and not v.strip() for v in words)


def emptiness(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """E2 of a whole plan: a rejected solvable task, or neither calls nor a word of plan.

    A plan in words with an empty chain is only suspected: it might get by without tools. So is a
    reply with something else in it, which may be the plan under a name of its own.
    """
    prediction = item.prediction
    if prediction.kind == "text" or any(True for _ in prediction.calls):
        return
    if prediction.kind == "reject":
        message = "the task is rejected although it can be solved"
        yield finding("empty-plan", "E2", "proven", "response", message)
    elif not prediction.plan.strip():
        certainty = "proven" if is_mute(item) else "suspected"
        yield finding("empty-plan", "E2", certainty, "tool_chain", "no plan and no call")
    elif item.reference is not None and item.reference.names:
        message = "a plan in words without a single call"
        yield finding("empty-plan", "E2", "suspected", "tool_chain", message)


def call_due(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """E2 of steps: none of them makes a call.

    Proven where the rubric says a call was due, suspected where the reference makes one.
    """
    prediction = item.prediction
    if prediction.kind == "text" or any(True for _ in prediction.calls):
        return
    reference_calls = item.reference is not None and bool(item.reference.names)
    due = rubric.call_due == "always" or (rubric.call_due == "reference" and reference_calls)
    if prediction.kind == "reject":
        message = "the task is given up"
        certainty = "proven" if due else "suspected"
        yield finding("call-due", "E2", certainty, "response", message)
    elif due or reference_calls:
        message = "words only, no tool call"
        yield finding("call-due", "E2", "proven" if due else "suspected", "response", message)
