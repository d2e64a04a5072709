"""Form and emptiness: a broken output format, plans and steps without calls, unsolvable cases."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from ...errors import shorten
from ...records import Finding, Item
from ...records.loose_json import as_object
from ...records.responses import words_beside
from ...rubrics import Rubric
from .rules import finding


def output_format(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """Faults in the form of the reply; the rubric states their code.

    Proven if the tested model's prompt is known to have demanded the form, and for an empty reply
    if there were tools to plan with. Otherwise a readable reply in another form has no fault, and
    an unreadable one is suspected.
    """
    is_proven = item.format_demanded or (item.is_silent and item.tools is not None)
    return _format(item, rubric, is_proven=is_proven)


def unreadable(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """A reply in which no step can be read; lesser faults of form are shown, but decide nothing."""
    is_proven = item.is_silent or (item.format_demanded and item.prediction.kind == "text")
    return _format(item, rubric, is_proven=is_proven)


def _format(item: Item, rubric: Rubric, *, is_proven: bool) -> Iterator[Finding]:
    certainty = "proven" if is_proven else "suspected"
    for problem in item.prediction.problems:
        if item.format_demanded or not problem.is_readable:
            yield finding("format", rubric.form_code, certainty, problem.where, problem.message)


def is_mute(item: Item) -> bool:
    """True if a reply is empty, or one JSON object whose values are all empty, except a REJECT."""
    if item.is_silent:
        return True
    try:
        reply = as_object(orjson.loads(item.response))
    except ValueError:
        return False
    own = "status" if item.prediction.kind == "reject" else ""
    words = [v for k, v in (reply or {}).items() if k != own and v not in (None, "", [], {}, False)]
    return bool(reply) and all(isinstance(v, str) and not v.strip() for v in words)


def over_refusal(item: Item) -> bool | None:
    """True if a solvable case that asks for a whole plan is answered with the reject form.

    Prose that declines, and a provider's refusal without text, are not in that form.

    Returns:
        None for cases without a solution, for those that ask for steps, and for those that state no
        tools, whose answers need not be plans.
    """
    is_planned = item.form == "plan" and item.tools is not None
    if not is_planned or item.condition.unsolvable_type is not None:
        return None
    return item.prediction.kind == "reject"


def emptiness(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """E2 of a whole plan: a rejected solvable task, or neither calls nor a word of plan.

    A plan in words with an empty chain is only suspected: it might need no tools. So is a reply
    with other content, which may be the plan under another name.
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

    Proven if the rubric states that a call was due, or if the reference makes one and the reply has
    no words either; suspected if only the reference makes one.
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
    elif reference_calls and is_mute(item):
        yield finding("empty-plan", "E2", "proven", "response", "no call and no word")
    elif due or reference_calls:
        message = "words only, no tool call"
        yield finding("call-due", "E2", "proven" if due else "suspected", "response", message)


_STOP_REQUIRED = ("visual_missing", "tool_removal")


def carried_on(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """A reply that makes calls where stopping is required, even one that says REJECT.

    Proven for missing visuals and removed tools, where passing requires a chain that is empty or
    only ends the task, if the ending tools are known and nothing in the reply declines, nor any
    words beside its JSON that might. Suspected otherwise, also for the other two types, where a
    plan may contain the refusal or the question. If the case does not state ``ends``, the tool
    called last may end the task.
    """
    prediction = item.prediction
    calls = [call for call in prediction.calls if call.name]
    working = [call for call in calls if call.name not in (item.endings or ())]
    if prediction.kind == "text" or not working:
        return
    is_known = item.ends is not None or (
        item.endings is not None and any(call.name != calls[-1].name for call in working)
    )
    proven = (
        is_known
        and item.condition.unsolvable_type in _STOP_REQUIRED
        and prediction.kind != "reject"
        and not has_words_beside(item)
    )
    message = f"{len(working)} call(s) are planned although the case can't be solved"
    certainty = "proven" if proven else "suspected"
    yield finding("carried-on", "E3", certainty, working[0].where, message)


def calls_offline(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """A call of the tool that the query demands and declares out of service.

    Proven if nothing in the reply declines and there are no words outside its JSON that might.
    """
    offline = item.construction.offline_tool if item.construction else None
    if offline is None:
        return
    is_refused = item.prediction.kind == "reject" or has_words_beside(item)
    certainty = "suspected" if is_refused else "proven"
    for call in item.prediction.calls:
        if call.name == offline:
            message = f"{shorten(offline)} is out of service, as the query states"
            yield finding("offline-tool", "E3", certainty, call.where, message)


def has_words_beside(item: Item) -> bool:
    """True if a reply has words outside its JSON."""
    return any(map(str.isalnum, words_beside(item.response)))


def says_nothing(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """A reply without calls and words: it names nothing, declines nothing, asks nothing.

    Proven if the whole reply is one JSON object whose values are all empty; a bare REJECT does
    decline, and is suspected if passing requires naming what is missing.
    """
    prediction = item.prediction
    is_unread = prediction.kind == "text" and not item.is_silent
    if is_unread or any(True for _ in prediction.calls) or prediction.plan.strip():
        return
    if not is_mute(item):
        return
    if prediction.kind != "reject":
        message = "neither a plan nor a word of refusal"
        yield finding("says-nothing", "E2", "proven", "response", message)
    elif item.condition.unsolvable_type in _STOP_REQUIRED:
        message = "rejected without saying what is missing"
        yield finding("says-nothing", "E2", "suspected", "response", message)
